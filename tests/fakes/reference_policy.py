"""The policy a second time, from the words of its description alone: slow, small, and without a line of console.policy.

A few programs, plain globs (``P``, ``P/*``, ``P/**``), and a disk of links and folders; everything else asks or is denied.
"""

import re

ALLOW, ASK, DENY, WORDS = 0, 1, 2, ("allow", "ask", "deny")
NEVER = {"eval", "source", "export", "trap", "alias", "."}
RESERVED = {"if", "then", "for", "while", "!", "case", "function"}
WRAPPERS, RUNNERS = {"nice": 0, "nohup": 0, "timeout": 1}, {"sudo", "watch"}
# Each program: options without a value, options with one and what it is, and what its operands are (the last kind repeats).
PROGRAMS: dict[str, tuple[str, dict[str, str], list[str]]] = {
    "cat": ("AbeEnstTuv", {}, ["read"]),
    "grep": ("EFGPiywxzsvbcHhlLnoqTZaIrU", {"e": "text", "f": "read"}, ["text", "read"]),
    "sort": ("bdfgiMhnRrVcCmsuz", {"o": "write", "k": "text"}, ["read"]),
    "curl": ("fsSLiIkvg", {"o": "write", "X": "text", "e": "text", "r": "text"}, ["url"]),
}
PROGRAMS |= {"rm": ("fiIrRdv", {}, ["delete"]), "touch": ("acmh", {"r": "look"}, ["make"]), "tee": ("aip", {}, ["write"])}


class Reference:
    def __init__(
        self, rules: dict[str, list[str]], links: dict[str, str], folders: set[str], hard: set[str], protected: str, names: set[str]
    ) -> None:
        self.rules, self.links, self.folders, self.hard, self.protected = rules, links, folders, hard, re.compile(protected)
        self.names = names | folders | {*links}

    def judge(self, tool: str, argument: str) -> str:
        if tool == "shell":
            return WORDS[max((self.command(argv, targets) for argv, targets in split(argument)), default=DENY)]
        return WORDS[self.host(argument.split("/")[2]) if tool == "http_request" else self.file(tool.split("_")[0], argument)]

    def globs(self, kind: str) -> list[list[str]]:
        return [text.replace("${WORKSPACE}", "/workspace").split(":", 1) for text in self.texts(kind, "file")]

    def texts(self, kind: str, family: str) -> list[str]:
        return [rule[len(family) + 1 : -1].removesuffix(":*") for rule in self.rules[kind] if rule.startswith(family + "(")]

    def host(self, host: str) -> int:
        if not re.fullmatch(r"(?!-|[0-9.]+\Z)[a-z0-9_-]+(\.[a-z0-9_-]+)*", host):
            return DENY if self.texts("deny", "network") else ASK
        for kind, verdict in (("deny", DENY), ("ask", ASK), ("allow", ALLOW)):
            names = [rule.removeprefix("outbound").lstrip(":") or "*" for rule in self.texts(kind, "network")]
            if any(name in ("*", host) or (name.startswith("*.") and host.endswith(name[1:])) for name in names):
                return verdict
        return ASK

    def real(self, path: str, links: dict[str, str]) -> str:
        done: list[str] = []
        for piece in path.split("/"):
            done = done[:-1] if piece == ".." else [*done, piece] if piece not in ("", ".") else done
            if target := links.get("/" + "/".join(done)):
                done = [one for one in self.real(target, links).split("/") if one]
        return "/" + "/".join(done)

    def file(self, use: str, path: str) -> int:
        whole = path if path.startswith("/") else "/workspace/" + path
        flat, real = self.real(whole, {}), self.real(whole, self.links)
        if real in self.hard:
            return DENY
        folder, action = real in self.folders, {"make": "write", "look": "read"}.get(use, use)
        acts = (action, "write") if action == "delete" else (action,)
        below = [
            one + name[len(real.rstrip("/")) :]
            for name in self.names
            for one in (flat.rstrip("/"), real.rstrip("/"))
            if self.lies(name, real)
        ]
        least = ALLOW
        for kind, verdict in (("deny", DENY), ("ask", ASK)):
            globs = [glob for act, glob in self.globs(kind) if act in acts]
            if any(covers(glob, one, folder) for glob in globs for one in (flat, real)):
                return max(least, verdict)
            deep = folder and use not in ("make", "look")
            for act, glob in self.globs(kind) if deep else []:
                # To remove is to change, too.
                if act in acts and any(covers(glob, one, self.real(one, {}) in self.folders) for one in below):
                    least = max(least, ASK if verdict == ASK or use == "read" or act != action else DENY)
                if act == action and verdict == DENY and use != "read":  # a place below holds though nothing is there
                    least = DENY if any(self.lies(glob.rstrip("*").rstrip("/"), one) for one in (flat, real)) else least
        if least == DENY:
            return DENY
        if action == "delete" and any(re.search(r"/\.git(/|$)", one) for one in (flat, real, *(below if folder else []))):
            return ASK
        if action == "write" and (self.protected.search(flat + "\n" + real) or (folder and use != "make")):
            return ASK
        entire = folder and use in ("read", "delete")
        mine = [glob for act, glob in self.globs("allow") if act == action and (glob.endswith("/**") or not entire)]
        alone = folder and action != "delete"
        return max(least, ALLOW if all(any(covers(glob, one, alone) for glob in mine) for one in (flat, real)) else ASK)

    def lies(self, name: str, folder: str) -> bool:
        return name != "/" and name.startswith(folder.rstrip("/") + "/")

    def command(self, argv: list[str], targets: list[tuple[str, str]]) -> int:
        worst = max([ALLOW, *(self.file("read" if sign == "<" else "write", one) for sign, one in targets)])
        called = argv[0].rsplit("/", 1)[-1] if argv[0].rstrip("/") else argv[0]
        where = self.real(argv[0] if argv[0][0] == "/" else "/workspace/" + argv[0], self.links) if "/" in argv[0] else "/usr/bin/" + called
        name = where.rsplit("/", 1)[1]
        if {called, name} & set(self.texts("deny", "shell")) or argv[0] in NEVER or name in RUNNERS:
            return DENY
        worst = max(worst, ASK) if {called, name} & set(self.texts("ask", "shell")) else worst
        if name in WRAPPERS and len(argv) > 1 + WRAPPERS[name]:
            return max(worst, self.command(argv[1 + WRAPPERS[name] :], []))
        if name in PROGRAMS:
            known = called == name and name in self.texts("allow", "shell") and where.startswith("/usr/bin/")
            return max([worst, ALLOW if known else ASK, *self.arguments(name, argv[1:])])
        writes = False
        for word in argv[1:] if name not in WRAPPERS else []:
            if word.rsplit("/", 1)[-1] in self.texts("deny", "shell") or self.hides(word):
                return DENY
            output = word if writes and word[:1] != "-" else word[2:] if word[:2] == "-o" and "/" in word else ""
            if output and self.file("make", output) == DENY:
                return DENY
            writes = word == "-o" or (writes and (word[:1] != "-" or output != ""))
        return max(worst, ASK)

    def hides(self, word: str) -> bool:
        """Whether a word holds what may not be read: as it is, behind a sign, or glued to the letters of an option."""
        pieces = {word, *re.split("[=@:,;]", word)}
        pieces |= {rest for one in pieces for at in range(2, 13) if one[:1] == "-" and "/" not in one[:at] and (rest := one[at:])}
        return any(self.file("look", one) == DENY for one in pieces if one and one[0] != "-")

    def arguments(self, name: str, words: list[str]) -> list[int]:
        (flags, valued, kinds), pending = PROGRAMS[name], words[::-1]
        found, seen, operands, lacks = [ALLOW], "", words[:0], False
        while pending:
            word = pending.pop()
            if word == "--":
                operands, pending = operands + pending[::-1], []
            elif not word.startswith("-") or word == "-":
                operands.append(word)
            elif option := re.match(rf"-([{flags or '-'}]*)(.?)(.*)", word):
                seen += option.group(1) + option.group(2)
                if option.group(2) and (option.group(2) not in valued or not (option.group(3) or pending)):
                    found.append(DENY if option.group(2) not in valued and self.hides(word) else ASK)
                    lacks = lacks or option.group(2) in valued  # which word is missing nobody can say, so neither what it would have read
                elif option.group(2):
                    found.append(self.use(valued[option.group(2)], option.group(3) or pending.pop()))
        kinds = ["read"] if name == "grep" and set("ef") & set(seen) else kinds
        uses = [(kinds[min(place, len(kinds) - 1)], word) for place, word in enumerate(operands)]
        if name == "grep" and "r" in seen and (lacks or not any(kind == "read" and word != "-" for kind, word in uses)):
            uses.append(("read", "."))
        return found + [self.use(kind, word) for kind, word in uses]

    def use(self, kind: str, word: str) -> int:
        ignored = kind == "text" or (kind in ("read", "look") and word == "-")
        return ALLOW if ignored else self.host(word.split("/")[0]) if kind == "url" else self.file(kind, word)


QUERIES = {"select", "with", "values", "begin", "commit", "rollback"}
CHANGES = {
    "insert",
    "update",
    "delete",
    "merge",
    "into",
    "drop",
    "truncate",
    "create",
    "alter",
    "grant",
    "call",
    "exec",
    "set",
    "copy",
    "lock",
}
COMPUTES = {
    "count",
    "sum",
    "max",
    "lower",
    "coalesce",
    "in",
    "exists",
    "values",
    "as",
    "and",
    "or",
    "where",
    "from",
    "join",
    "union",
    "all",
    "on",
    "x",
}


def changes(text: str) -> bool:
    """Whether a text for a database counts as a write, of the part of SQL in which all dialects agree."""
    unsure = re.search(r"'{3}|--|#|/\*|\\|\$", text)
    if len(text) > 8192 or (unsure and CHANGES & set(re.findall(r"\w+", text.lower()))):
        return True
    text = re.sub(r"/\*.*?\*/|--[^\n]*", " ", text)
    pieces = re.findall(r"'(?:[^']|'')*'|([A-Za-z_][\w.]*)([ ]*\()?|(;)|[\s\d(),=*<>+]|(.)", text)
    begins, known = True, False
    for word, call, semicolon, strange in pieces:
        name = word.lower()
        if strange or name in CHANGES or (begins and name and name not in QUERIES) or (call and name not in COMPUTES | QUERIES):
            return True
        known = known or bool(name)
        begins = bool(semicolon) or (begins and not name)
    return not known


def covers(glob: str, path: str, itself: bool) -> bool:
    if glob.endswith("/**"):
        return path.startswith(glob[:-2]) or (itself and path == glob[:-3])
    return path.rpartition("/")[0] == glob[:-2] if glob.endswith("/*") else path == glob


def split(text: str) -> list[tuple[list[str], list[tuple[str, str]]]]:
    """Simple commands with their redirects. None when the text is not static or not plain."""

    def unquoted(word: str) -> str:
        return re.sub(r"'([^']*)'|\"([^\"]*)\"|\\(.)", lambda found: "".join(one or "" for one in found.groups()), word)

    word = r"((?:'[^']*'|\"[^\"$`\\]*\"|\\.|[^\s;&|<>()'\"\\$`{}*?~\[\]#!])+)"
    pieces = re.findall(rf"[ \t]+|(&&|\|\||[;|\n])|(>>|[<>])[ \t]*{word}|{word}|(.)", text)
    found: list[tuple[list[str], list[tuple[str, str]]]] = [([], [])]
    for sign, redirect, target, plain, wrong in pieces:
        argv, targets = found[-1]
        if (
            wrong
            or (sign not in ("", "\n") and not argv)
            or (plain and not argv and (plain in RESERVED or re.match(r"\w+\+?=|''|\"\"$", plain)))
        ):
            return []
        targets += [(redirect, unquoted(target))] if redirect else []
        argv += [unquoted(plain)] if plain else []
        found += [([], [])] if sign and argv else []
    signs = [sign for sign, *_ in pieces if sign.strip()]
    if any(targets and not argv for argv, targets in found) or not found[0][0] or (signs and signs[-1] != ";" and not found[-1][0]):
        return []
    return [one for one in found if one[0]]
