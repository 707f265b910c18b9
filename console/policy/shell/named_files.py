"""Find the files that the words of a command may name where no description says what a word is.

A file may be glued to an option (``-f/etc/shadow``), stand behind ``=``, ``@`` or ``:`` (``-d@FILE``), or be a plain word.
What a deny rule names is denied in each of these spellings. What a program of the workspace is given outside of it asks.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from console.domain.calls.permission import Verdict
from console.policy.files.paths import Files, absolute
from console.policy.rules.verdicts import NO_RULE, Part
from console.policy.shell.effects import UseRules
from console.policy.shell.operands import Use

_OUTPUT = re.compile(
    r"(?:-o|--?out[a-z-]*|--[a-z-]+-out(?:put)?|--output[a-z-]*|--write|--in-place|--destination|--junit-?xml|--basetemp|--?coverprofile)\Z"
)
_TEXTS = re.compile(r"(?i)-[kgem]\Z|--?[\w-]*(?:pattern|grep|filter|match|ignore|exclude|regex|route|url|href|base|prefix|public|host)\Z")
"""Options whose value begins with a slash though it names no file: an expression, or a part of an address."""
_SEARCHED = re.compile(r"-(?:[IL]|isystem)(?!.*=)")
"""Folders that compilers only read."""
_BUILDS = frozenset(
    {"sphinx-build", "sphinx-apidoc", "sphinx-autogen", "convert", "magick", "ffmpeg", "sox", "papermill", "objcopy", "strip"}
)
"""Programs that write what one of their operands names."""
_OFFERED = re.compile(r"(?:-{1,2}[\w-]+=|-[a-zA-Z])?(?:\w+://)?(?:0\.0\.0\.0|\[::\]|::)(?::\d+)?/?\Z")
"""All addresses of a machine, as an option or an operand of a server names them."""
_SIMPLE = re.compile(r"[\w./~@%+:,=-]+\Z")
_IN_TEXT = re.compile(r"[\s'\"();,=]+")
_SEPARATORS = re.compile(r"[=@:,;]")
_GLUED = 12
"""Letters of options that a path may be glued to."""
_PIECES = 50
_WORDS, _TEXTS_MAX, _TEXTS_BYTES, _LONGEST = 1000, 8, 4096, 2000
_OUTSIDE = "{} lies outside of the workspace, and a program that is given it may change it"
_SCRATCH = ("/tmp/", "/var/tmp/", "/dev/")  # noqa: S108
"""Where programs keep what they need for a moment, and where nothing is kept."""


def denied_reads(uses: UseRules, words: Sequence[str], cwd: str) -> list[Part]:
    """A denial for each word that names, in whatever spelling, what a rule denies to be read."""
    found = (uses.judge(Use("list", path), cwd, False) for word in words for path in paths_in(word))
    return [part for part in found if part.verdict is Verdict.DENY and (part.rule.startswith("file(") or part.rule == "devices")]


def paths_in(word: str) -> Iterator[str]:
    """Every path that a word may hold; a text of many words holds none."""
    pieces = dict.fromkeys((word, *_SEPARATORS.split(word)))
    for piece in list(pieces)[:_PIECES]:
        if piece.startswith("-"):
            last = min(piece.find("/") if "/" in piece else len(piece), _GLUED)
            yield from (piece[at:] for at in range(2, last + 1) if piece[at:])
        elif piece and len(piece) < 1024 and piece.isprintable():
            yield piece
    if "=" in word and word.partition("=")[2]:
        yield word.partition("=")[2]


def written(uses: UseRules, argv: tuple[str, ...], cwd: str) -> list[Part]:
    """What is denied or dangerous of the files that an undescribed program writes by custom."""
    parts = [uses.judge(Use("make", word), cwd, False) for word in _outputs(argv)]
    return [part for part in parts if part.verdict is Verdict.DENY or part.danger]


def texts_in(argv: Sequence[str]) -> Iterator[str]:
    """What a program may hand to a shell: a word that holds several, what stands behind its ``=``, and what its first words precede."""
    for word in (one.strip()[:_LONGEST] for one in argv[1:] if _is_text(one)):
        value = word.partition("=")[2].strip()
        pieces = word.split()
        yield from dict.fromkeys(
            one for one in (word, value, " ".join(pieces[1:]), " ".join(pieces[2:]), word.lstrip("!. ")) if " " in one and one[0] != "-"
        )


def has_too_many(argv: Sequence[str]) -> bool:
    """Whether more is given than is looked through: an agent could keep the judgement busy with it."""
    texts = [min(len(word.strip()), _LONGEST) for word in argv if _is_text(word)]
    return len(argv) > _WORDS or len(texts) > _TEXTS_MAX or sum(texts) > _TEXTS_BYTES


def _is_text(word: str) -> bool:
    return " " in word.strip()


def beyond(uses: UseRules, files: Files, argv: tuple[str, ...], cwd: str, workspace: str) -> list[Part]:
    """What a program of the workspace is given that reaches beyond its work: files outside, places that others run, all addresses."""
    return [*outside(uses, files, argv, cwd), *offered(argv), *perhaps_written(uses, argv, cwd, workspace)]


def offered(argv: Sequence[str]) -> list[Part]:
    """A question for a server that answers on all addresses."""
    found = next((word for word in argv[1:] if _OFFERED.match(word)), "")
    why = "it answers on all addresses of this machine, so that others may connect"
    return [Part(found, Verdict.ASK, NO_RULE, "network", why)] if found else []


def perhaps_written(uses: UseRules, argv: tuple[str, ...], cwd: str, workspace: str) -> list[Part]:
    """A question for each place of the workspace where a rule denies to write and that one of its programs is given: it may write there.

    A place that other programs run or read from counts as the value of an option alone: as an operand it is what is checked or shown.
    """
    builds = argv[0].rpartition("/")[2] in _BUILDS
    given = [
        *((word, is_value or builds) for word, is_value in _given(argv)),
        *((piece, False) for word in argv[1:] if " " in word for piece in _IN_TEXT.split(word)[:_PIECES]),
    ]
    found: dict[str, Part] = {}
    for word, is_value in given:
        for path in (word, f"{word}/x") if word and len(word) < 1024 and word.isprintable() and word not in found else ():
            if not f"{absolute(path, cwd)}/".startswith(f"{workspace}/"):
                continue  # ``outside`` asks
            part = uses.judge(Use("make", path), cwd, False)
            if (part.verdict is Verdict.DENY and part.rule.startswith("file(")) or (is_value and part.danger):
                found[word] = Part(f"use {word}", Verdict.ASK, part.rule, "file", f"it may write {word[:80]}", danger=part.danger)
                break
    return list(found.values())


def outside(uses: UseRules, files: Files, argv: tuple[str, ...], cwd: str) -> list[Part]:
    """A question for each file that a program of the workspace is given and that lies where no rule lets it read: it may change it."""
    given: dict[str, bool] = {}
    for word, is_file in (*_given(argv), *((word, True) for word in _outputs(argv))):
        given[word] = given.get(word, False) or is_file
    parts = (_outside(uses, files, word, is_file, cwd) for word, is_file in given.items())
    return list({part.text: part for part in parts if part is not None}.values())


def _given(argv: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    """Each word, or piece of one, that may be a file, and whether it is one though nothing lies there: the value of an option."""
    option = ""
    for word in argv[1:]:
        name, glued, value = word.partition("=")
        if not word.startswith("-"):
            yield from ((piece, bool(option) and _SIMPLE.match(piece) is not None) for piece in _pieces(word))
            option = ""
        elif glued:
            yield from ((piece, not _TEXTS.match(name) and _SIMPLE.match(piece) is not None) for piece in _pieces(value))
            option = ""
        else:
            option = "" if word == "--" or _TEXTS.match(word) else word
            if not _SEARCHED.match(word):  # where a glued value begins is certain behind one letter alone
                yield from ((piece, word[2:3] in ("/", "~") and piece == word[2:]) for piece in paths_in(word))


def _pieces(value: str) -> Iterator[str]:
    value = value.removeprefix("file://")
    yield value
    if "://" not in value and _SIMPLE.match(value):
        yield from (piece for piece in _SEPARATORS.split(value)[:_PIECES] if piece)


def _outside(uses: UseRules, files: Files, word: str, is_file: bool, cwd: str) -> Part | None:
    if not word or len(word) > 1024 or not word.isprintable():
        return None
    path = absolute(word, cwd)
    facts, above = files.look(path), posixpath.dirname(path)
    if word == "~" or word.startswith("~/"):  # programs put the home directory in its place themselves
        return Part(f"use {word}", Verdict.ASK, NO_RULE, "file", _OUTSIDE.format(word[:80]))
    if facts.kind == "missing" and above == "/" and word.endswith("/"):
        return None  # an expression between slashes
    if facts.kind == "missing" and not is_file and (above == "/" or files.look(above).kind != "folder"):
        return None  # a text that looks like a path
    scratch = path.startswith(_SCRATCH) and facts.real.startswith(_SCRATCH) and ".." not in word.split("/")
    part = uses.judge(Use("list", word), cwd, False)
    if scratch or (part.verdict is not Verdict.ASK and part.rule != "plain files only"):
        return None
    return Part(f"use {facts.real or path}", Verdict.ASK, NO_RULE, "file", _OUTSIDE.format(word[:80]))


def _outputs(argv: tuple[str, ...]) -> list[str]:
    """Files behind ``-o``, ``--out...`` or ``--write``, or glued to it."""
    found, behind = [], False
    for word in argv[1:]:
        name, _, value = word.partition("=")
        if not word.startswith("-"):
            found += [word] if behind else []
        elif value and _OUTPUT.match(name):
            found.append(value)
        elif word.startswith("-o") and "/" in word:
            found.append(word[2:])
        else:
            behind = bool(_OUTPUT.match(word))
    return found
