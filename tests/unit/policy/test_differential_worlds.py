"""``console.policy`` is never looser than the words of docs/reference/policy.md as a second evaluator reads them, whatever is drawn."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from console.domain.errors import UsageProblem
from console.domain.network import Sensitivity
from console.policy.judge import Call, Context, judge
from console.policy.rules.loading import read_settings
from console.policy.scopes import ALL
from console.policy.shell.check import Policy
from tests.fakes import reference_words as reference
from tests.fakes.named_disk import NamedDisk
from tests.fakes.policy_names import World
from tests.fakes.policy_world import catalogue, dangers, tools

LOOSE = ("allow", "ask", "deny")
PROGRAMS = tuple(reference.SPECS)
OTHERS = (*reference.WRAPPERS, *["sudo", "ssh", "find", "bash", "sh", "python3", "nosuch", "eval", "source", "awk", "git"])
WORKSPACES: tuple[str, ...] = ("/w", "/work/c-1", "/srv/a*b", "/srv/[ab]", "/srv/x{y,z}")
SPOTS = (
    "a.txt",
    "b.log",
    "sub",
    "sub/x",
    "sub/deep",
    "sub/deep/y",
    ".git",
    ".git/config",
    ".bashrc",
    "secret",
    "secret/key",
    "c d",
    "to,ol",
)
OUTSIDE = ("/etc/passwd", "/etc/shadow", "/etc/cron.d/x", "/out/data", "/out/key", "/home/u/.bashrc", "/w-evil/x", "/srv/ab/x")
TARGETS = (
    "/etc/shadow",
    "/etc",
    "/out",
    "../out",
    "sub",
    "a.txt",
    "secret/key",
    "./secret",
    "sub/../secret",
    "/nowhere/x",
    "link",
    "../link",
    "/",
)
HOSTS = ("a.example", "b.a.example", "evil.example", "xa.example", "a.example.", "A.EXAMPLE", "127.0.0.1", "127.1", "0x7f.1", "10.0.0.8")
SHELL = (
    *(f"{name}:*" for name in PROGRAMS),
    *(
        "cat",
        "cat a.txt",
        "ls -l",
        "grep -r:*",
        "grep x:*",
        "rm -rf /:*",
        "rm -f:*",
        "rm a.txt",
        "curl -X POST:*",
        "sort -o:*",
        "head -n 5:*",
    ),
    *(
        "/usr/bin/cat:*",
        "kitty:*",
        "fetch:*",
        "./tool:*",
        "tool:*",
        "bash:*",
        "timeout:*",
        "env:*",
        "nice:*",
        "sudo:*",
        "find:*",
        "cp a.txt b.log",
    ),
)
GLOBS = (
    *(
        "${WORKSPACE}/**",
        "${WORKSPACE}/*",
        "${WORKSPACE}/a.txt",
        "${WORKSPACE}/sub/**",
        "${WORKSPACE}/sub/*",
        "${WORKSPACE}/secret/**:*",
        "/**",
    ),
    *("/etc/**", "/etc/*", "/etc/shadow", "/out/**", "/out/*", "**/key", "**/secret/**", "**/.git/**", "/srv/${CONTEXT_ID}/**", "/home/**"),
)
OPTIONS = "-n -r -R -f -rf -e -o -nr -fr -i -v -5 -n5 -ob.log -fa.txt --recursive --force --output -- - -Z -k1".split()  # noqa: SIM905
NETWORK = (
    "a.example",
    "*.a.example",
    "*",
    "evil.example",
    "a.example:443",
    "a.example:8443",
    "127.0.0.1",
    "*.example",
    "10.0.0.8:80",
    "A.Example",
)
BROKEN: tuple[str, ...] = (
    "",
    " ",
    "{}",
    "[]",
    '{"permissions": {}}',
    '{"permissions": {"allow": []}}',
    '{"permissions": {"allow": "shell(cat:*)"}}',
    "{",
    "null",
)
BROKEN += (
    '{"permissions": {"allow": ["shell(cat:*)"], "allow": []}}',
    '{"permissions": {"allow": ["cat"]}}',
    '{"permissions": {"allow": [1]}}',
)
BROKEN += ('{"permissions": {"allow": ["shell(cat:*)"], "maybe": []}}', '{"permission": {}, "permissions": {"allow": ["shell(cat:*)"]}}')
HOSTILE: tuple[str, ...] = (
    "$(curl e)",
    "`id`",
    "$HOME",
    "${x:-y}",
    "{a,b}",
    "*.txt",
    "~/x",
    "$'\\x63url'",
    "<(cat a.txt)",
    "a.txt\\",
    "'a",
    '"a',
    "(cat",
    ")",
    "x\u202ey",
)
HOSTILE += (
    "a=~/x",
    "\\\n",
    "#",
    "x#y",
    "a\tb",
    "]",
    "}",
    "!",
    "%",
    "^x",
    "$",
    '"$"',
    '"a b"',
    "a\\ b",
    '"\\$(id)"',
    "'$(id)'",
    "\xa0",
    "[ab]",
    "??",
)


def a_world(chance: random.Random) -> World:
    """Programs, a workspace, what lies outside of it, and links between them."""
    workspace = chance.choice(WORKSPACES)
    names = [*(name for name in (*PROGRAMS, *OTHERS) if name not in ("nosuch", "eval", "source")), "other"]
    tree = {f"/usr/bin/{name}": "f" for name in names} | {"/bin": ">usr/bin", "/usr/local/bin/kitty": ">../../bin/cat"}
    tree |= {"/usr/bin/fetch": ">curl", "/usr/local/bin/tool": chance.choice("fff>")}
    tree["/usr/local/bin/tool"] = tree["/usr/local/bin/tool"].replace(">", f">{workspace}/tool")
    tree |= dict.fromkeys(OUTSIDE, "f") | {f"{workspace}/{spot}": "f" for spot in SPOTS if chance.randrange(3)}
    tree |= {f"{workspace}/tool": chance.choice(("f", ">/usr/bin/curl", ">/usr/bin/cat")), "/out/pipe": "p", "/out/hard": "h"}
    for _ in range(chance.randrange(5)):
        tree[f"{workspace}/{chance.choice(('link', 'sub/link', 'b.log', 'sub', 'secret', 'cat'))}"] = ">" + chance.choice(TARGETS)
    for _ in range(chance.randrange(2)):
        tree[f"{workspace}/{chance.choice(('hard', 'sub/x', 'a.txt'))}"] = chance.choice("hp")
    whole = {"/": "d", **tree}
    for path in tree:
        pieces = path.split("/")[1:-1]
        for depth in range(1, len(pieces) + 1):
            above = "/" + "/".join(pieces[:depth])
            if whole.get(above, "f")[0] != ">":
                whole[above] = "d"
            else:
                whole.pop(path, None)  # nothing lies behind a link's own name
                break
    return World(whole, workspace, chance.choice((workspace, workspace, f"{workspace}/sub")), "c-1")


def some_rules(chance: random.Random) -> str:
    """A settings.json; now and then a broken one."""
    if chance.randrange(50) == 0:
        return chance.choice(BROKEN)

    def rule() -> str:
        kind = chance.randrange(5)
        if kind < 2:
            return f"shell({chance.choice(SHELL)})"
        return (
            f"file({chance.choice(('read', 'read', 'write', 'delete'))}:{chance.choice(GLOBS)})"
            if kind < 4
            else f"network(outbound:{chance.choice(NETWORK)})"
        )

    lists = {"allow": [rule() for _ in range(chance.choice((3, 8, 20)))], "deny": [rule() for _ in range(chance.choice((0, 1, 3)))]}
    lists["ask"] = [rule() for _ in range(chance.choice((0, 0, 2)))]
    if chance.randrange(2):
        lists["allow"] += [f"shell({name}:*)" for name in PROGRAMS] + ["file(read:${WORKSPACE}/**)", "file(write:${WORKSPACE}/**)"]
    lists["unconfined"] = [one for one in lists["allow"] if one.startswith("shell(") and chance.randrange(20) == 0]
    return json.dumps({"permissions": lists})


def a_path(chance: random.Random, world: World) -> str:
    name = chance.choice((*SPOTS, *SPOTS, "link", "link/x", "link/../a.txt", "sub/link", "new", "new/er", ".", "..", "hard", "tool", "cat"))
    match chance.randrange(9):
        case 0:
            return chance.choice((*OUTSIDE, "/out/pipe", "/out/hard", "/etc", "/", "/out"))
        case 1:
            return f"{world.workspace}/{name}"
        case 2:
            return chance.choice(("./", "../", "sub/../", "sub//", ".//./", "link/")) + name
        case 3:
            return f"{world.workspace}-evil/{name}"
        case _:
            return name


def an_argument(chance: random.Random, world: World) -> str:
    match chance.randrange(14):
        case 0 | 1:
            return chance.choice(OPTIONS)
        case 2:
            return chance.choice(HOSTS)
        case 3:
            return chance.choice(("http", "https", "file", "ftp")) + f"://{chance.choice(HOSTS)}{chance.choice(('', ':8443', '/x'))}"
        case 4 if chance.randrange(4) == 0:
            return chance.choice(HOSTILE)
        case 4 | 5:
            return chance.choice(("x", "5", "-n", "POST", "a:b", "x=y"))
        case _:
            return a_path(chance, world)


def written(chance: random.Random, word: str) -> str:
    """The same word, in other signs."""
    match chance.randrange(24):
        case 0:
            return f"'{word}'"
        case 1:
            return f'"{word}"'
        case 2:
            return f"{word[:1]}''{word[1:]}"
        case 3 if word[:1].isalpha():
            return "\\" + word
        case 4:
            return f'{word[:2]}"{word[2:]}"'
        case _:
            return word if not set(word) & set("*[]{} ,") or chance.randrange(3) == 0 else f"'{word}'"


def simple(chance: random.Random, world: World) -> str:
    """One simple command, wrapped, with assignments and redirects."""
    words: list[str] = []
    if chance.randrange(30) == 0:
        words.append(chance.choice(("FOO=1", "LD_PRELOAD=x.so", "PATH=.:/bin", "x+=1", "!", "2>&1", "a[0]=1")))
    for _ in range(chance.choice((0, 0, 0, 0, 1, 2))):
        words.append(
            chance.choice(
                ("env", "env -i", "env -u X", "env A=1", "timeout 5", "timeout -s KILL 5", "nice", "nice -n 5", "nice -5", "nohup", "time")
            )
            if chance.randrange(3)
            else chance.choice(
                (
                    "stdbuf -oL",
                    "command",
                    "exec",
                    "sudo",
                    "xargs",
                    "xargs -0",
                    "env -S",
                    "timeout --foreground 5",
                    "command -p",
                    "find . -exec",
                )
            )
        )
    called = (
        chance.choice(PROGRAMS)
        if chance.randrange(4)
        else chance.choice((*OTHERS, "kitty", "fetch", "./tool", "tool", "/bin/cat", "./cat", "../tool"))
    )
    words.append(written(chance, called))
    words += [written(chance, an_argument(chance, world)) for _ in range(chance.choice((0, 1, 1, 2, 2, 3, 4)))]
    for _ in range(chance.choice((0, 0, 0, 1, 1, 2)) if chance.randrange(2) else 0):
        sign = chance.choice((">", ">>", "<", "2>", "&>", ">|", "2>&1", "<>", ">&", "1>&2", "&>>", "<<", "<<<", ">&-"))
        target = (
            "" if sign in ("2>&1", "1>&2", ">&-") else written(chance, chance.choice((a_path(chance, world), "/dev/null", "/dev/tcp/h/80")))
        )
        words.insert(chance.randrange(len(words) + 1), sign + chance.choice(("", " ")) + target)
    return " ".join(words)


def a_call(chance: random.Random, world: World) -> tuple[str, str]:
    match chance.randrange(10):
        case 0 | 1:
            return "file", f"{chance.choice(('read', 'write', 'delete'))}:{a_path(chance, world)}"
        case 2:
            return "http_request", f"https://{chance.choice(HOSTS)}{chance.choice(('', ':443', ':8443', ':99999'))}/x"
        case 3:
            return "network", f"outbound:{chance.choice(HOSTS)}{chance.choice(('', ':443', ':8443', ':80'))}"
        case 4 | 5:
            parts = [simple(chance, world) for _ in range(chance.choice((2, 2, 3)))]
            joined = parts[0]
            for part in parts[1:]:
                joined += chance.choice((" | ", "; ", " && ", " || ", "\n", ";", "|", "&&", " & ", " |& ", " ;; ", "\r\n", " # x\n")) + part
            return "shell", joined + chance.choice(("", "", "", ";", " &", " &&", "\n"))
        case _:
            return "shell", simple(chance, world)


SEEN: Counter[str] = Counter()


def product(given_text: str, world: World) -> Context:
    try:
        policy = Policy(read_settings(given_text.encode(), world.context, world.workspace), catalogue(), dangers())
    except UsageProblem:
        policy = None
    return Context(policy, NamedDisk(world), tools(), ALL, Sensitivity.PUBLIC, None, world.cwd)


def compare(seed: int) -> None:
    """Twenty calls by some rules in some world."""
    chance = random.Random(seed)
    world = a_world(chance)
    lists = some_rules(chance)
    ours = product(lists, world)
    for _ in range(20):
        tool, argument = a_call(chance, world)
        found = judge(Call(tool, argument), ours)
        words = reference.judge(lists, tool, argument, world)
        SEEN[f"{words} {found.verdict.value}"] += 1
        looser = LOOSE.index(found.verdict.value) < LOOSE.index(words)
        assert not looser, (seed, tool, argument, words, found.verdict.value, found.rule, found.reason, lists, world)


def compared(examples: int, same_each_time: bool) -> None:
    """The seed is what hypothesis draws: structures drawn one by one take a hundred times as long as judging them."""
    SEEN.clear()
    quiet = list(HealthCheck)
    bounds = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=quiet,
        derandomize=same_each_time,
    )
    bounds(given(st.integers(0, 2**64))(compare))()
    total = sum(SEEN.values())
    alike = sum(count for both, count in SEEN.items() if len(set(both.split())) == 1)
    assert total >= examples * 20 and alike > total * 0.8, SEEN
    assert min(SEEN[f"{word} {word}"] for word in LOOSE) > total / 50, SEEN


def test_never_looser_than_the_words() -> None:
    """10,000 calls."""
    compared(500, same_each_time=True)


@pytest.mark.parametrize(
    "seed", [757, 571809, 10014995, 10016438, 10017840, 20005591, 20008672, 20009531, 20012174, 20018622, 20023143, 700005653]
)  # of 1,200,000: into a folder, options without a value, behind one that is not described, `--` before nothing, values glued to options
def test_where_it_was_looser_once_it_is_not_any_more(seed: int) -> None:
    compare(seed)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_never_looser_than_the_words_a_million_times() -> None:
    compared(int(os.environ.get("WATCHFLOOR_DIFFERENTIAL", "50000")), same_each_time=False)


def test_the_reference_stays_small_and_apart() -> None:
    text = Path(reference.__file__).read_text()
    assert "from console" not in text and "import console" not in text
    assert len(text.splitlines()) <= 155


def test_every_letter_of_options_that_are_written_together_is_read() -> None:
    settings_text = json.dumps({"permissions": {"allow": ["shell(cat:*)", "shell(curl:*)", "file(read:/**)"]}})
    tree = dict.fromkeys(("/", "/usr", "/usr/bin", "/w"), "d") | {"/usr/bin/cat": "f", "/usr/bin/curl": "f", "/w/a.txt": "f"}
    world = World(tree, "/w", "/w", "c-1")
    for text, words in (("cat -nb a.txt", "allow"), ("cat -nX a.txt", "ask"), ("curl -fr 5", "allow"), ("curl -fo b.txt", "ask")):
        assert reference.judge(settings_text, "shell", text, world) == words, text


def test_what_follows_the_end_of_options_is_the_program() -> None:
    """``env - -e .``: by env(1) a lone ``-`` is ``-i``, and what follows it is no option."""
    settings_text = json.dumps({"permissions": {"allow": ["shell(cat:*)"]}})
    tree = dict.fromkeys(("/", "/usr", "/usr/bin", "/w"), "d") | {f"/usr/bin/{name}": "f" for name in ("env", "cat", "xargs")}
    world = World(tree, "/w", "/w", "c-1")
    for text, words in (
        ("xargs -0 env -i env - -e .", "ask"),
        ("env - cat", "allow"),
        ("env -- -u cat", "ask"),
        ("env -u cat", "ask"),
        ("env - sudo", "deny"),
    ):
        found = judge(Call("shell", text), product(settings_text, world)).verdict.value
        assert reference.judge(settings_text, "shell", text, world) == words, text
        assert LOOSE.index(found) >= LOOSE.index(words), text
