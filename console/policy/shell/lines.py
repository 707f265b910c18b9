"""A shell string as simple commands, read twice: by our own words (``lexer``) and by tree-sitter-bash with an allowlist of node types.

Both must find the same commands, words and redirects at the same places. Where they differ, or where one of them finds anything else
(assignments, substitutions, functions, loops, here-documents ...), nothing is certain and the text is refused.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import tree_sitter
import tree_sitter_bash

from console.policy.shell.lexer import Operator, Refused, Target, Token, Word, check_text, cut

COMMANDS_MAX = 64
_NODES = frozenset(
    [
        "program",
        "list",
        "pipeline",
        "command",
        "command_name",
        "word",
        "number",
        "concatenation",
        "raw_string",
        "string",
        "string_content",
        "file_redirect",
        "file_descriptor",
        "redirected_statement",
        "comment",
    ]
)
_SIGNS = frozenset(('"', "&&", "||", ";", "|", "|&", "&", "\n", ">", "<", ">>", ">|", "&>", "&>>", ">&", "<&", ">&-", "<&-", "$"))
_WORDLIKE = frozenset(["word", "number", "concatenation", "raw_string", "string"])
_RESERVED = frozenset(
    [
        "!",
        "{",
        "}",
        "[[",
        "]]",
        "if",
        "then",
        "elif",
        "else",
        "fi",
        "for",
        "while",
        "until",
        "do",
        "done",
        "case",
        "esac",
        "select",
        "function",
        "in",
        "coproc",
    ]
)
_ASSIGNS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\[[^\]]*\])?\+?=")


@dataclass(slots=True)
class Simple:
    """A simple command: its words after quote removal, and its redirects."""

    joined: str
    """The operator before it; empty for the first."""
    start: int
    end: int = 0
    words: list[Word] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    behind: bool = False
    """Followed by ``&``: it would go on while the next one runs."""

    @property
    def argv(self) -> tuple[str, ...]:
        return tuple(word.value for word in self.words)


def simple_commands(text: str) -> list[Simple]:
    """The simple commands of a text, in order. Raises Refused, in words, when there is anything else in it, or nothing."""
    check_text(text)
    tokens = cut(text)
    found = list(_grouped(tokens, text))
    if not found:
        raise Refused("there is no command in it")
    if len(found) > COMMANDS_MAX:
        raise Refused(f"it has {len(found)} commands; at most {COMMANDS_MAX} are judged")
    for simple in found:
        _check_start(simple)
    _check_same(text, found)
    return found


def _grouped(tokens: list[Token], text: str) -> Iterator[Simple]:
    current: Simple | None = None
    joined, pending = "", ""
    for token in tokens:
        if isinstance(token, Operator):
            if current is not None:
                current.behind = token.text == "&"
                yield current
                current, pending = None, token.text
            elif token.text != "\n":
                raise Refused(f"an operator ({token.text}) has no command before it", token.at)
            joined = ";" if pending in ("\n", "&") else pending
            continue
        if current is None:
            current = Simple(joined, token.start if isinstance(token, Word) else token.at)
            pending = ""
        if isinstance(token, Word):
            current.words.append(token)
            current.end = token.end
        else:
            current.targets.append(token)
            current.end = token.word.end
    if current is not None:
        yield current
    elif pending in ("&&", "||", "|", "|&"):
        raise Refused(f"an operator ({pending}) has no command after it", len(text))


def _check_start(simple: Simple) -> None:
    if not simple.words:
        raise Refused("a redirect stands alone", simple.start)
    first = simple.words[0]
    if _ASSIGNS.match(first.braces):
        raise Refused("it sets a variable for a command", first.start)
    if not first.quoted and first.value in _RESERVED:
        raise Refused(f"it holds the shell's word {first.value}", first.start)
    if first.pattern or first.tilde:
        raise Refused("the program's name would be expanded by the shell", first.start)
    if not first.value:
        raise Refused("the program's name is empty", first.start)


def fed(argv: tuple[str, ...], targets: Sequence[Target]) -> tuple[str, ...]:
    """The words of ``patch`` and ``git apply`` with the file that they get as their input."""
    name, files = argv[0].rpartition("/")[2], [target.word.value for target in targets if target.operator == "<"]
    if len(files) != 1 or not (name == "patch" or (name == "git" and argv[1:2] == ("apply",))):
        return argv
    return (*argv, "-i", files[0]) if name == "patch" else (*argv, files[0])


def is_built_of(text: str, more: frozenset[str]) -> bool:
    """Whether the second reader knows a text without a mistake, as what simple commands are made of and these nodes."""
    pending = [_parser().parse(text.encode("utf-8", "surrogateescape")).root_node]
    if pending[0].has_error:
        return False
    while pending:
        node = pending.pop()
        if node.is_missing or (node.is_named and node.type not in _NODES and node.type not in more):
            return False
        pending.extend(node.children)
    return True


@functools.cache
def _parser() -> tree_sitter.Parser:
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _check_same(text: str, found: list[Simple]) -> None:
    """The second reading, by tree-sitter: nothing but what is in the allowlist, and the same words at the same places."""
    data = text.encode()
    tree = _parser().parse(data)
    if tree.root_node.has_error:
        raise Refused("it has a mistake in its syntax, or a construct that is not known")
    words: list[tuple[int, int]] = []
    commands = 0
    pending = [tree.root_node]
    while pending:
        node = pending.pop()
        if (node.type not in _NODES) if node.is_named else (node.type not in _SIGNS):
            raise Refused(f"it holds a {node.type.replace('_', ' ')}", node.start_byte)
        if node.is_missing:
            raise Refused("something is missing in it", node.start_byte)
        commands += node.type == "command"
        if node.type in _WORDLIKE:
            words.append((node.start_byte, node.end_byte))
            if node.type in ("concatenation", "string"):
                _check_inside(node)
            continue
        pending.extend(reversed(node.children))
    ours = [place for simple in found for place in _places(simple)]
    if data.isascii() is False:
        offsets = _byte_offsets(text)
        ours = [(offsets[a], offsets[b]) for a, b in ours]
    if commands != len(found) or sorted(words) != sorted(ours):
        raise Refused("two readings of it differ; write it more plainly")


def _check_inside(node: tree_sitter.Node) -> None:
    pending = list(node.children)
    while pending:
        inner = pending.pop()
        if (inner.type not in _NODES) if inner.is_named else (inner.type not in _SIGNS):
            raise Refused(f"it holds a {inner.type.replace('_', ' ')}", inner.start_byte)
        pending.extend(inner.children)


def _places(simple: Simple) -> Iterator[tuple[int, int]]:
    for word in simple.words:
        yield word.start, word.end
    for target in simple.targets:
        if not (target.operator in (">&", "<&") and target.word.value == "-"):  # closing is one sign for tree-sitter
            yield target.word.start, target.word.end


def _byte_offsets(text: str) -> list[int]:
    offsets, at = [0], 0
    for char in text:
        at += len(char.encode())
        offsets.append(at)
    return offsets


def substitutions(text: str, kinds: Collection[str] = ("command_substitution", "process_substitution")) -> list[tuple[int, int]]:
    """Where the outermost ``$(...)`` and ``<(...)`` of a text stand, or other nodes, in order, by the second reader."""
    data = text.encode("utf-8", "surrogateescape")
    found: list[tuple[int, int]] = []
    pending = [_parser().parse(data).root_node]
    while pending:
        node = pending.pop()
        if node.type in kinds:  # in a string it may take a blank in
            written = data[node.start_byte : node.end_byte]
            found.append((node.end_byte - len(written.lstrip()), node.end_byte))
        else:
            pending.extend(reversed(node.children))
    if len(data) == len(text):
        return found
    return [(len(data[:a].decode("utf-8", "surrogateescape")), len(data[:b].decode("utf-8", "surrogateescape"))) for a, b in found]
