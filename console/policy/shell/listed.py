"""Read names that one command lists and another is given: ``LISTER | xargs CMD``, ``CMD $(LISTER)``, ``LISTER | while read -r f``.

Whatever such a lister prints lies below the folders that it looks in. So the command is judged as one that ``find FOLDERS -exec`` runs.
other listers nothing is certain.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_PATHS_OF_GIT = {"ls-files": (), "diff": ("--name-only",), "grep": ("-l", "--files-with-matches", "--name-only")}
"""Subcommands that print names below the folder they run in, and the options without which they print something else."""
_OPTIONS = frozenset({
    "-print", "-print0", "--name-only", "--cached", "--staged", "--others", "--modified", "--deleted",
    "--exclude-standard", "--diff-filter", "--files", "--files-with-matches", "--files-without-match", "--glob", "--iglob", "--type",
    "--type-not", "--hidden", "--no-ignore",
    "--ignore-case", "--word-regexp", "--fixed-strings", "--smart-case", "--sort", "--include", "--exclude", "--exclude-dir", "--null",
    "--print0", "--extension", "--max-depth", "--recursive", "--extended-regexp", "--color", "--unique", "--reverse", "--lines",
    "--invert-match", "--zero-terminated", "--line-regexp", "--perl-regexp", "--regexp", "--no-messages", "--no-pager", "--",
})  # fmt: skip
"""Long options with which a lister, or a filter of its lines, still prints whole names."""
_LETTERS = {
    "rg": "lLiSwFPUaugtTz0sIHej", "grep": "rRlLiwEFPszZHIea", "fd": "etEHIugiFaL0dj", "fdfind": "etEHIugiFaL0dj", "ls": "1trSdUv",
    "git": "zcmodluiwEFPe", "head": "nqz0123456789", "tail": "nqz0123456789", "sort": "urnVzfk0123456789", "uniq": "uz", "cat": "",
    "egrep": "viwxFPe", "fgrep": "viwxe",
}  # fmt: skip
_FILTER_LETTERS = {**_LETTERS, "grep": "viwxEFPqse"}
_VALUED = frozenset("etTgEdnkmj")
_BY_LETTER = {"rg": "lL", "grep": "lL"}
"""Without one of these letters they print lines."""
_ACTS = re.compile(r"-(?:f?printf|fprint0?|f?ls|exec(?:dir)?|ok(?:dir)?|delete|files0-from)\Z")
_INTERPRETER = re.compile(r"(?:.*/)?(?:[a-z]{0,4}sh|python[\d.]*|perl|ruby|node|php|lua|eval|exec)")
_SCRIPT = re.compile(r"-\w*[ceErpn]|--(?:eval|print|command|run|execute)")
_XARGS_FLAGS, _XARGS_VALUED = frozenset("0rtxop"), frozenset("nLPIsd")


def finder(tokens: Sequence[str]) -> list[str] | None:
    """The words of a ``find`` below whose folders all names lie that a pipeline prints; None: that is not certain."""
    commands = _parted(tokens, "|")
    words = [_words(command) for command in commands]
    if not words or any(one is None or not one for one in words):
        return None
    first, *filters = [one for one in words if one is not None]
    if not all(_is_filter(one) for one in filters):
        return None
    return _find(commands[0], first) if first[0] == "find" else _below(first)


def given(tokens: Sequence[str], found: Sequence[str]) -> list[str] | None:
    """What ``xargs ...`` runs, as it is run with names that ``found`` finds; None: that is not certain."""
    at, name = 1, ""
    while at < len(tokens) and tokens[at].startswith("-"):
        word = _bare(tokens[at])
        if word in ("--null", "--no-run-if-empty", "--verbose"):
            at += 1
            continue
        letter = next((n for n in range(1, len(word)) if word[n] not in _XARGS_FLAGS), 0)
        if word.startswith("--") or (letter and word[letter] not in _XARGS_VALUED):
            return None
        value = word[letter + 1 :] if letter else ""
        if letter and not value:
            at += 1
            value = _bare(tokens[at]) if at < len(tokens) else ""
        if letter and word[letter] == "d" and value not in ("\\n", "n", "\n", "\\0", "0"):
            return None
        name = value if letter and word[letter] == "I" else name
        at += 1
    command, redirects = _without_redirects(tokens[at:])
    if not command:
        command = ["echo"]
    words = [_bare(word) for word in command]
    held = [word for word in words if name and name in word and word != name]
    if held:  # `DIR/{}`: all of it lies below that folder
        folder = held[0].removesuffix(f"/{name}")
        if len(held) > 1 or name in words or any(".." in word for word in found) or not re.fullmatch(r"[\w.+@/-]+", folder):
            return None
        found, command, words = ["find", folder], [name if _bare(word) == held[0] else word for word in command], []
    made = [("{}" if name and _bare(word) == name else word) for word in command]
    return executed(found, [*made, *([] if name else ["{}"]), *redirects])


def shows(tokens: Sequence[str]) -> bool:
    """Whether ``xargs ...`` only prints what it is given."""
    run = given(tokens, ["find"]) if tokens[:1] == ["xargs"] else None
    return run is not None and run[2] in ("echo", "printf") and not any(re.search(r"[<>]", word) for word in run)


def executed(found: Sequence[str], command: Sequence[str]) -> list[str] | None:
    """A command with ``{}`` for each name, as ``find`` would run it."""
    words, redirects = _without_redirects(command)
    if any(_bare(word) in (";", "+") for word in words) or any("{}" in word for word in redirects):
        return None
    runs = any(_INTERPRETER.fullmatch(_bare(word)) for word in words)
    if any(word == "{}" and (not at or (runs and _SCRIPT.fullmatch(_bare(words[at - 1])))) for at, word in enumerate(words)):
        return None  # a name would be run, or read as a script
    return [*found, "-exec", *words, "\\;", *redirects]


def _parted(tokens: Sequence[str], sign: str) -> list[list[str]]:
    made: list[list[str]] = [[]]
    for token in tokens:
        if token == sign:
            made.append([])
        else:
            made[-1].append(token)
    return made


def _bare(token: str) -> str:
    return re.sub(r"['\"\\]", "", token) if token != "\\n" else token


def _words(tokens: Sequence[str]) -> list[str] | None:
    """A command's words as they are, without ``2>/dev/null``; None: one of them is not certain."""
    words, redirects = _without_redirects(tokens)
    if any(one not in ("2>", "2>>", "/dev/null", ">&", "2>&", "1") for one in redirects):
        return None
    if any(re.search(r"[$`\n&;()]|\A(?:if|for|while|until|do|then|\{|!)\Z", word) for word in words if word[:1] not in "'\"(\\!"):
        return None
    return None if any("$" in word and word[:1] != "'" for word in words) else [_bare(word) for word in words]


def _without_redirects(tokens: Sequence[str]) -> tuple[list[str], list[str]]:
    words, redirects, at = list[str](), list[str](), 0
    while at < len(tokens):
        if re.search(r"[<>]&?\Z|[<>]\|\Z", tokens[at]):
            redirects += tokens[at : at + 2]
            at += 2
        else:
            words.append(tokens[at])
            at += 1
    return words, redirects


def _find(tokens: Sequence[str], words: Sequence[str]) -> list[str] | None:
    """The same without what it prints; a name of a folder that leads up is judged where it leads."""
    kept, redirects = _without_redirects(tokens)
    if redirects and "2>" not in redirects:
        return None
    return None if any(_ACTS.match(word) for word in words) else [word for word in kept if _bare(word) not in ("-print", "-print0")]


def _below(words: Sequence[str]) -> list[str] | None:
    """The folders that a lister looks in, without such as it never lists."""
    name, operands = words[0], list(words[1:])
    if name == "git":
        verb = operands[0] if operands else ""
        wanted = _PATHS_OF_GIT.get(verb)
        if wanted is None or (wanted and not set(wanted) & set(operands)) or any(word.startswith("/") for word in operands):
            return None
        operands = operands[1:]
    elif name not in ("rg", "grep", "fd", "fdfind", "ls"):
        return None
    letters = "".join(word[1:] for word in operands if word[:1] == "-" and word[1:2] != "-")
    if name in _BY_LETTER and not set(_BY_LETTER[name]) & set(letters) and not any(word.startswith("--files") for word in operands):
        return None
    if not _is_plain(name, operands, _LETTERS) or any(".." in word.split("/") or word.startswith("~") for word in operands):
        return None
    if name == "git":
        tests = ["-not", "-path", "'*/.git/*'"]
    else:
        tests = ["-not", "-path", "'*/.*'"] if name[:1] in "rf" and not (set("u.HI") & set(letters) or "--hidden" in operands) else []
    return ["find", *_folders(name, operands), *tests]


def _folders(name: str, words: Sequence[str]) -> list[str]:
    """The operands that are folders for certain, else the folder that it runs in, with such as are given by a whole path."""
    named, is_value, is_given = list[str](), False, name == "ls" or "--files" in words
    for word in words:
        if not word.startswith("-") and not is_value:
            named.append(word)
        is_value = bool(
            re.fullmatch(
                rf"-\w*[{''.join(_VALUED)}]|--(?:glob|iglob|type|type-not|include|exclude|exclude-dir|extension|max-depth|regexp)", word
            )
        )
        is_given = is_given or bool(re.fullmatch(r"-\w*e.*|--regexp.*", word) and name != "fd" and name != "fdfind")
    paths = named if is_given else named[1:]
    if name in ("rg", "grep", "fd", "fdfind") and paths and all(re.fullmatch(r"[\w./@+-]+", word) for word in paths):
        return paths
    return [".", *(word for word in named if word.startswith("/"))]


def _is_plain(name: str, words: Sequence[str], letters: dict[str, str]) -> bool:
    """Whether all options are known, and none changes how a name is printed."""
    for word in words:
        if word.startswith("--"):
            if word.partition("=")[0] not in _OPTIONS:
                return False
        elif word.startswith("-") and len(word) > 1:
            end = next((at for at in range(1, len(word)) if word[at] in _VALUED), len(word))
            if not set(word[1 : end + 1]) <= set(letters[name]):
                return False
    return True


def _is_filter(words: Sequence[str]) -> bool:
    """Whether it prints some of the lines that it reads, and no others."""
    name, behind = words[0], words[1:]
    if name not in ("grep", "egrep", "fgrep", "head", "tail", "sort", "uniq", "cat") or not _is_plain(name, behind, _FILTER_LETTERS):
        return False
    operands, is_value = 0, False
    for word in behind:
        operands += 0 if word.startswith("-") or is_value else 1
        is_value = bool(re.fullmatch(r"-[a-zA-Z]*[enk]", word))
    return operands <= (1 if name.endswith("grep") and not any(re.fullmatch(r"-\w*e.*|--regexp.*", word) for word in behind) else 0)
