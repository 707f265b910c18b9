"""A second evaluator of a policy, from the words of docs/reference/policy.md and the manual pages: a lexer of its own, few programs, and
what it does not know asks. It gives the *loosest* verdict that the words permit: `console.policy` may be stricter, never looser."""

import json
import re
import unicodedata
from collections.abc import Callable
from os.path import basename
from pathlib import Path

from tests.fakes.policy_names import World

ALLOW, ASK, DENY = "0 allow", "1 ask", "2 deny"  # in the order of max()
KNOWN = json.loads((Path(__file__).parents[1] / "data/policy/reference_programs.json").read_text())
SPECS, LONG, WRAPPERS, FORBIDDEN, SWALLOWING, RESERVED, STARTED, WORD, QUOTED, REDIRECT, RULE = [*KNOWN.values()][1:]
TOKEN = re.compile(rf"(?P<space>[ \t]+|\\\n|#[^\n]*)|{REDIRECT}|(?P<end>&&|\|\||\|&|[;|&\n])|{WORD}")


def plain(word: str) -> str:
    """What a word means as it was written."""
    pieces = re.findall(rf"""{QUOTED}|[^'"\\]+""", word)
    inner = [re.sub(r'\\([$`"\\])', r"\1", piece.replace("\\\n", "")) if piece[0] == '"' else piece for piece in pieces]
    return "".join(piece[1:-1] if piece[0] in "'\"" else piece[1:] if piece[0] == "\\" else piece for piece in inner)


class Policy:
    def __init__(self, settings: str, world: World) -> None:
        given = json.loads(settings, object_pairs_hook=lambda pairs: dict(pairs) if len(dict(pairs)) == len(pairs) else None)
        self.world, self.lists = world, dict[str, list[tuple[str, str]]]()
        for name, rules in given["permissions"].items():
            parsed = [re.fullmatch(RULE, rule, re.S).groups("") for rule in rules]  # type: ignore[union-attr]
            self.lists[name] = [(rule[1] + rule[3] or "shell", rule[0] + rule[2] + rule[4]) for rule in parsed]
        unknown = {*given, *self.lists} - {"permissions", "context_workspace", "allow", "ask", "deny", "unconfined"}
        if unknown or not any(self.lists.values()):
            raise ValueError("empty or broken")

    def ruled(self, kind: str, fits: Callable[[str, str], bool], unnamed: str = ASK) -> str:
        rules = ((verdict, rule) for name, verdict in (("deny", DENY), ("ask", ASK), ("allow", ALLOW)) for rule in self.lists.get(name, []))
        return next((verdict for verdict, (of, body) in rules if of == kind and fits(body, verdict)), unnamed)

    def use(self, kind: str, value: str) -> str:
        if kind in ("ask", "text") or value in ("-", "/dev/null"):
            return ASK if kind == "ask" else ALLOW
        if kind in ("url", "outbound"):
            return self.host(value if "://" in value else f"{kind.replace('url', 'http')}://{value}")
        named, of = [*self.world.walk(value)[:1], self.world.walk(value)[-1]], kind.replace("list", "read")
        names, folder = [name.rstrip("/") for name in named], "/" * (self.world.tree.get(named[-1], "d"[: named == ["/"]]) == "d")
        under = [start + rest for start in (names[0], names[-1]) for rest in self.world.below(named[-1]) if kind in ("read", "delete")]
        if self.world.tree.get(named[-1]) in ("h", "p") or value.startswith(("/dev/tcp/", "/dev/udp/")):
            return DENY
        spelled = [(name, name + folder * (at < len(named))) for at, name in enumerate(names)]
        verdicts = [self.ruled(of, lambda body, _, s=both: any(self.world.means(body, name) for name in s)) for both in spelled]  # type: ignore[misc]
        deep = max([ALLOW, *(self.ruled(of, lambda body, _, name=name: self.world.means(body, name)) for name in under)])  # type: ignore[misc]
        deep = ASK if kind == "write" and any(re.search(STARTED, name) for name in names) else deep
        return max(*verdicts, min(deep, ASK) if kind == "read" else deep)

    def host(self, text: str) -> str:
        found = re.fullmatch(r"(\w+)://([^@/?#:]*)(?::(\d{1,4}))?(?:[/?#].*)?", text, re.S)
        scheme, host, given = text.partition(":")[0], found[2].rstrip(".").lower() if found else "", found[3] if found else ""
        if not host or re.fullmatch(r"[0-9.]+|0x.*", host) and not re.fullmatch(r"(?:(?:0|[1-9]\d{0,2})(?:\.(?!$)|$)){4}", host):
            return ASK
        port = int(given or {"http": 80, "https": 443, "ftp": 21}.get(scheme, 0))
        names = {host, "*", *(f"*{host[dot:]}" for dot, sign in enumerate(host) if sign == "." and dot)}
        near = {*names, *(f"{name}:{port}" for name in names)}
        own = self.ruled("outbound", lambda b, v: b.lower() in near or not port and v != ALLOW and b.lower().split(":")[0] in names)
        return max(own, ALLOW if re.fullmatch(r"[a-z0-9.-]+", host) and scheme in ("http", "https", "ftp", "outbound") else ASK)

    def arguments(self, name: str, words: list[str]) -> tuple[set[tuple[str, str]], list[str]]:
        """The options, each with its value, and the operands; an option that is not known is ("?", word)."""
        (flags, valued, kinds), rest, operands, options = SPECS.get(name, ("", {}, [])), [*words], list[str](), set[tuple[str, str]]()
        while kinds != ["text+"] and rest and (word := rest.pop(0)) != "--":
            long, _, value = word.partition("=")
            word = LONG[long][:2] + value if long in LONG and LONG[long][1] in (valued if LONG[long][2:] else flags) else word
            operands += [word] if word[:1] != "-" or word == "-" else []
            options |= {("?", word)} if word[:2] == "--" else set()
            while word[:1] == "-" and word[1:2] not in ("", "-"):
                letter = "r" if word[1] == "R" and name in ("rm", "cp", "grep") else word[1]
                value = (word[2:] or (rest.pop(0) if rest else "")) if letter in valued else ""
                options.add((letter, value) if letter in flags or name not in SPECS or value else ("?", word))
                word = "" if letter in valued else "-" + word[2:]
        return options, operands + rest

    def means(self, body: str, verdict: str, argv: list[str]) -> bool:
        """An allow rule means the words and that very file; deny and ask every name of the file, and options in any order and spelling."""
        words, more, file = body.removesuffix(":*").split(), body[-2:] == ":*", self.world.program(argv[0])
        other, unconfined = self.world.program(words[0]), ("shell", body) in self.lists.get("unconfined", [])
        if verdict == ALLOW:
            swallows = words[0] in SWALLOWING.split() or other.startswith(self.world.workspace + "/")
            same = (unconfined or not swallows) and (words[0] == "*" or other == file != "")
            return same and (argv[1 : len(words)] if more else argv[1:]) == words[1:]
        (options, operands), (given, mine) = (self.arguments(basename(file or argv[0]), each[1:]) for each in (words, argv))
        same = words[0] == "*" or bool({words[0], other or words[0]} & {basename(argv[0]), file or argv[0]})
        return same and options <= given and operands == mine[: len(operands)] and (more or (options, operands) == (given, mine))

    def run(self, argv: list[str]) -> str:
        file, rest, more, name = self.world.program(argv[0]), argv[1:], True, basename(self.world.program(argv[0]) or argv[0])
        own = self.ruled("shell", lambda body, verdict: self.means(body, verdict, argv), ALLOW if name in WRAPPERS else ASK)
        if {basename(file), argv[0]} & {*FORBIDDEN.split()} and (own != ALLOW or not self.lists["unconfined"]):
            return DENY
        if name in WRAPPERS:
            while rest and (more and rest[0][:1] == "-" and (name == "env" or rest[0] != "-") or name == "env" and "=" in rest[0]):
                own, more = max(own, ASK if "=" in rest[0] else ALLOW), more and rest[0] not in ("-", "--")  # the last option
                rest = rest[2 if rest[0][1:] in {*WRAPPERS[name][0]} else 1 :]
            rest = rest[WRAPPERS[name][1] :]
            return max(own, ASK if name == "xargs" or not rest else ALLOW, self.run(rest) if rest else ALLOW)
        marked = own == ALLOW and any(self.means(body, ALLOW, argv) for of, body in self.lists.get("unconfined", []) if of == "shell")
        if name not in SPECS or not file:
            return own if marked or name in f"{SWALLOWING} {FORBIDDEN} find awk git".split() else max(own, ASK)
        (options, operands), (_, valued, kinds) = self.arguments(name, rest), SPECS[name]
        kinds = ["read+"] if name == "grep" and {letter for letter, _ in options} & {"e", "f"} else kinds
        if name in ("cp", "mv") and len(operands) < 2:
            return max(own, ASK)
        uses = [(valued.get(letter, "ask" if letter == "?" else "text"), value) for letter, value in options]
        for index, operand in enumerate(operands):
            kind = kinds[0] if (index < len(operands) - 1 if "+" in kinds[0] else index == 0) else kinds[-1]
            into = kinds[-1] == "write" and self.world.tree.get(self.world.walk(operands[-1])[-1]) == "d"
            uses += [(each, operand) for each in kind.rstrip("+").split("&") if each != "write" or not into]
            uses += [("write", f"{operands[-1]}/{basename(operand)}")] * (into and kind != "write")
        if name == "ls" and not operands or name == "grep" and ("r", "") in options and len(operands) < len(kinds):
            uses += [(kinds[-1].rstrip("+"), ".")] if name == "grep" or self.use("list", ".") == DENY else []
        return ALLOW if (worst := max([own, *(self.use(kind, value) for kind, value in uses)])) == ASK and marked else worst

    def shell(self, text: str) -> str:
        if len(text.encode()) > 8192 or {unicodedata.category(c) for c in re.sub(r"[\n\t ]", "", text)} & {"Cc", "Cf", "Zl", "Zp", "Zs"}:
            return DENY
        verdicts, raw, at = list[str](), list[str](), 0
        while at <= len(text):
            if not (token := TOKEN.match(text + "\n", at)) or token["end"] and not raw and token["end"] != "\n":
                return DENY
            at, raw = token.end(), raw if token["end"] or token["space"] else [*raw, token.group()]
            if token["end"] and raw:
                verdicts, raw = [*verdicts, self.simple(raw)], []
        return max(verdicts)

    def simple(self, raw: list[str]) -> str:
        at = [index for index, word in enumerate(raw) if re.fullmatch(REDIRECT, word)]
        words = [word for index, word in enumerate(raw) if index not in at and index - 1 not in at]
        verdicts = [DENY if words and re.match(RESERVED, words[0]) else ALLOW]
        for operator, target in ((raw[index], plain(raw[index + 1])) for index in at if not re.fullmatch(REDIRECT, raw[index + 1])):
            copied = operator[-1] == "&" and re.fullmatch(r"\d+-?|-", target)
            verdicts += [self.use(kind, target) for sign, kind in (("<", "read"), (">", "write")) if sign in operator and not copied]
        verdicts += [ASK] if any(re.search(r"[*?[]|^~|[=:]~", re.sub(QUOTED, "", word)) for word in raw) else []
        return max([*verdicts, *([self.run([plain(word) for word in words[words[0] == "!" :]])] if words else [])])


def judge(settings: str, tool: str, argument: str, world: World) -> str:
    """ "allow", "ask" or "deny"; tools: shell, http_request, network (`outbound:HOST`), file (`read:PATH`)."""
    try:
        policy, (kind, _, value) = Policy(settings, world), argument.partition(":")
        return (policy.shell(argument) if tool == "shell" else policy.use(*(("url", argument) if "://" in argument else (kind, value))))[2:]
    except (ValueError, TypeError, LookupError, AttributeError):
        return "deny"
