"""Take what the shell would put in place of words out of a text: ``$(COMMAND)``, ``<(COMMAND)``, ``$((N))``, names that a command lists.

Each command that runs for its output stands before the one that gets it. What gets it is judged only where the output does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from console.policy.shell import listed
from console.policy.shell.lines import substitutions
from console.policy.shell.tokens import CLOSES, bare, begun_at, is_end, may_show

_OPEN, _CLOSE = "\ue000", "\ue001"
"""No text that is read holds these; a number between them stands for a substitution."""
_MARK = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,11}")
_SUBSTITUTIONS_MAX, _DEPTH_MAX = 12, 3
_SHOWING = frozenset({"echo", "printf", "test", "[", "[["})
"""Builtins to which a word's text is a text."""
_COMPARING = frozenset({"diff", "comm", "cmp", "join", "paste", "sort", "cat", "head", "tail", "wc", "grep", "uniq"})
"""They only read what a process substitution names."""
_REVISION = r" \w+(?:[/.@-]\w+)*[~^]*\d*"
_PLAIN = re.compile(
    r"(?:date(?: -u)?(?: [\"']?\+[%\w.:-]+[\"']?)?|whoami|uname(?: -[a-z])*|hostname(?: -s)?|id -[ug]n?|arch|nproc|git (?:"
    rf"rev-parse(?: --(?:short(?:=\d+)?|abbrev-ref|verify))*{_REVISION}|merge-base{_REVISION}{_REVISION}|rev-list --count{_REVISION}"
    r"|describe(?: --(?:tags|always|abbrev=\d+|dirty))*|branch --show-current|symbolic-ref --short HEAD"
    r"|log -1 --(?:format|pretty)=[\"']?(?:format:)?%[hH][\"']?))\Z"
)
"""Commands that print one word, which is no path upwards and no option: a date, a name of this machine, or a revision."""
_BEFORE = frozenset({"&&", "||", ";", "&", "\n", "(", "{", "then", "do", "else", "elif", "if", "while", "until", "!"})
_COUNTS = re.compile(r"\$\(seq \d{1,4}(?: \d{1,4})?\)")
"""Numbers to go over, which are read with the loop."""
_PIECE = re.compile(r"'[^']*'|\\.|[^'\"\\`()$]+|\$(?!\(\()", re.DOTALL)
_MOVES, _READS = frozenset({"cd", "pushd", "popd", "chdir"}), frozenset({".", "source", "exit"})
_OPENS = frozenset({"if", "for", "while", "until", "case", "{", "(", "function"})
_COMPUTES = re.compile(r"\$\(\((?:[\s\d+*/%<>=!&|?:()~^,-]|\$?[A-Za-z_]\w*|\$\{[A-Za-z_]\w*\})*\)\)", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_NUMBERED = frozenset({"RANDOM", "SECONDS", "LINENO", "EPOCHSECONDS"})
"""Variables that the shell itself keeps numbers in."""


@dataclass(slots=True)
class Substituted:
    """One text without substitutions."""

    read: Callable[[str], list[str] | None]
    """Cuts a text into tokens; None: it is not certain."""
    has_names: bool = False
    """A command is given names that another lists."""
    unknown: set[str] = field(default_factory=set)
    """Variables that hold what a command prints."""
    counted: set[str] = field(default_factory=set)
    """Variables that hold a number, which a command counted."""
    _left: int = _SUBSTITUTIONS_MAX
    _depth: int = 0
    _inners: dict[str, tuple[bool, list[str]]] = field(default_factory=dict)

    def tokens(self, text: str) -> list[str] | None:
        """The tokens of a text with each inner command before the one that gets its output; None: something is not certain."""
        marked = self._marked(text)
        tokens = self.read(marked) if marked is not None else None
        if tokens is None or len(_MARK.findall(marked or "")) != len(_MARK.findall(" ".join(tokens))):
            return None  # one of them stands in a here-document
        return self._spread(tokens)

    def _marked(self, text: str) -> str | None:
        if _OPEN in text or _CLOSE in text or self._depth > _DEPTH_MAX:
            return None
        made, last = list[str](), 0
        for start, end in substitutions(text):
            if _COUNTS.fullmatch(text, start, end):
                continue
            self._left -= 1
            inner = text[start + 2 : end - 1]
            if self._left < 0 or text[start] == ">" or _end(text, start + 2) != end - 1 or re.search(r"<<|(?:\A|\s)#", inner):
                return None
            self._depth += 1
            tokens = self.tokens(inner)
            self._depth -= 1
            if tokens and tokens[0] == "<":
                tokens = ["cat", *tokens]
            if not tokens or any(bare(token) in _MOVES for token in tokens) or any(token in _READS for token in _commands(tokens)):
                return None
            mark = f"{_OPEN}{len(self._inners)}{_CLOSE}"
            self._inners[mark] = (text[start] == "<", tokens)
            made += [text[last:start], mark]
            last = end
        return "".join([*made, text[last:]])

    def _spread(self, tokens: list[str]) -> list[str] | None:
        """Without marks, and with what names that are listed are given to in the form that is judged."""
        made, at = list[str](), 0
        while at < len(tokens):
            loop = self._loop(tokens, at, made)
            if loop is None:
                return None
            if loop:
                at = loop
                continue
            end = next((n for n in range(at, len(tokens)) if is_end(tokens[n]) or (tokens[n] in ("(", ")"))), len(tokens))
            command = self._command(tokens[at:end], made)
            if command is None:
                return None
            made += [*command, *tokens[end : end + 1]]
            at = end + 1
        return made

    def _loop(self, tokens: list[str], at: int, made: list[str]) -> int | None:
        """Behind the end of a loop over listed names that begins here, with what it does in ``made``; 0: there is none."""
        is_for = tokens[at] == "for" and tokens[at + 2 : at + 3] == ["in"] and _MARK.fullmatch("".join(tokens[at + 3 : at + 4])) is not None
        is_while = tokens[at] == "while" and "read" in tokens[at + 1 : at + 3]
        if not (is_for or is_while):
            return 0
        do = next((n for n in range(at, len(tokens)) if tokens[n] == "do"), 0)
        done = next((n for n in range(do, len(tokens)) if tokens[n] == "done"), 0)
        head = [token for token in tokens[at + 1 : do] if token not in (";", "\n")]
        names = [token for token in head[head.index("read") + 1 :] if token != "-r"] if is_while else head[:1]
        if not done or not names or not all(map(_NAME.fullmatch, names)) or (is_while and not _is_read(head)):
            return None
        is_piped = is_while and made[-1:] == ["|"]
        source = self._inners[tokens[at + 3]][1] if is_for else _pipeline(made[:-1]) if is_piped else []
        found = listed.finder(source) if source and len(names) == 1 and (is_for or head[0] in ("read", "IFS=")) else None
        body = self._body(tokens[do + 1 : done], names, found)
        if body is None:
            return None
        self.has_names = self.has_names or found is not None
        if is_piped:
            made[-1] = ";"
        made += [*source, ";", *body] if is_for else body
        while made[-1] == ";" and is_while and not is_piped:
            made.pop()  # a redirect behind it belongs to it
        return done + 1

    def _body(self, tokens: list[str], names: Sequence[str], found: Sequence[str] | None) -> list[str] | None:
        """What a loop does, each command with its variables as it is run for names that were found; None: for anything, which is shown."""
        name = "|".join(names)
        variable = re.compile(rf"\$(?:(?:{name})(?!\w)|\{{(?:{name})\}})")
        made, command = list[str](), list[str]()
        for token in [*tokens, *([] if tokens and is_end(tokens[-1]) else [";"])]:
            if token in _OPENS or token in ("(", ")") or re.match(rf"(?:{name})(?:\Z|\+?=|\[)", bare(token)):
                return None
            if not is_end(token):
                command.append(token)
                continue
            if any(variable.search(word) for word in command):
                whole = _shown(command, variable)
                each = _whole(command, variable) if whole is None and found is not None else None
                run = listed.executed(found, each) if each is not None and found is not None else whole
                if run is None:
                    return None
                command = run
            spread = self._command(command, made) if command else []
            if spread is None:
                return None
            made += [*spread, ";" if token in ("\n",) else token]
            command = []
        return made

    def _command(self, words: list[str], made: list[str]) -> list[str] | None:
        """A command without marks; what it gets the output of is put in ``made``, before its pipeline."""
        name = next((bare(word) for word in words if not re.match(r"\w+=", word) and word not in _BEFORE), "")
        found = listed.finder(_pipeline(made[:-1])) if name == "xargs" and made[-1:] == ["|"] else None
        if name == "xargs" and made[-1:] == ["|"] and found is None and listed.shows(words):
            found = ["find", "."]  # whatever it is given is shown
        if found is not None:
            at = words.index("xargs") if "xargs" in words else -1
            run = listed.given(words[at:], found) if at == 0 else None
            if run is not None:
                self.has_names = True
                made[-1] = ";"
                words = run
        if not any(_MARK.search(word) for word in words):
            return words
        if _MARK.search(name):
            return None  # what it prints would be run
        kept, names, is_set = list[str](), list[str](), all(re.match(r"\w+=", word) for word in words if word != "export")
        inner: list[str] = []
        at = next((n for n, word in enumerate(words) if bare(word) == name), 0)
        for place, (before, word) in enumerate(zip(["", *words[:-1]], words, strict=True)):
            is_whole = _MARK.fullmatch(bare(word)) is not None and _counts(self._inners[bare(word)][1])
            is_odd = name in _SHOWING and _MARK.search(word) is not None and not is_whole and not may_show(words[at:], place - at)
            found_names = self._word(word, before, "" if is_odd else name, inner, kept)
            if found_names is None:
                return None
            names += found_names
        if is_set:  # what sets a variable stands first: it is set whatever the command answers
            return [*kept, "&&", *inner]
        at = _start(made)
        made[at:at] = [*inner, "&&"]
        if not names:
            return kept
        self.has_names = True
        return listed.executed(names, [*kept, "{}"])

    def _word(self, word: str, before: str, name: str, inner: list[str], kept: list[str]) -> list[str] | None:
        """Puts a word in ``kept``, as what stands for it; the answer: where the names lie that stand for it. None: it is not certain."""
        for mark in dict.fromkeys(found.group() for found in _MARK.finditer(word)):
            is_file, tokens = self._inners[mark]
            inner += ["&&", *tokens] if inner else tokens
            is_target = before[-1:] in ("<", ">", "|", "&") and not is_file
            assigned = re.match(r"([A-Za-z_]\w*)=", word)
            is_word = _PLAIN.match(" ".join(tokens)) is not None and not is_file
            if is_file and (name in _COMPARING or before == "<") and word == mark:
                word = "/dev/null"
            elif tokens == ["pwd"] and not is_file:
                word = word.replace(mark, "$PWD")
            elif assigned and not is_file and bare(word) == f"{assigned[1]}={mark}" and _counts(tokens):
                word = f"{assigned[1]}=1"
                self.unknown.add(assigned[1])
                self.counted.add(assigned[1])
            elif is_word or (assigned and not is_file) or (name in _SHOWING and not is_target and not is_file):
                word = word.replace(mark, "x")
                self.unknown |= {assigned[1]} if assigned and not is_word else set()
            elif word == mark and not is_target and not is_file and name != "xargs":
                return listed.finder(tokens)
            else:
                return None
        kept.append(word)
        return []


def _counts(tokens: Sequence[str]) -> bool:
    """Whether a pipeline prints one number: ``wc`` of its input, or ``grep -c`` of one file or its input."""
    last = list(tokens[max((at + 1 for at, token in enumerate(tokens) if token == "|"), default=0) :])
    if last[:1] == ["wc"]:
        return len(last) in (2, 4) and re.fullmatch(r"-[lcwm]", last[1]) is not None and last[2:3] in ([], ["<"])
    is_grep = last[:1] == ["grep"] and len(last) in (3, 4) and re.fullmatch(r"-[ivEFw]*c[ivEFw]*", last[1]) is not None
    return is_grep and all(re.fullmatch(r"['\"]?[\w.][\w./-]*['\"]?", word) for word in last[3:])


def _end(text: str, at: int) -> int:
    """Where a substitution ends by our own reading; -1: that is not certain."""
    depth = 0
    while at < len(text):
        if piece := _PIECE.match(text, at):
            at = piece.end()
        elif text[at] == '"':
            at = _end_of_string(text, at + 1)
            if at < 0:
                return -1
        elif text[at] == ")" and not depth:
            return at
        elif text[at] == ")" or (text[at] == "(" and text[at - 1] in "$<" and text[at + 1 : at + 2] != "("):
            depth += 1 if text[at] == "(" else -1
            at += 1
        else:
            return -1
    return -1


def _end_of_string(text: str, at: int) -> int:
    """Behind the quote that closes a string; -1: that is not certain."""
    while at < len(text) and text[at] != "`":
        if text[at] == '"':
            return at + 1
        if text.startswith("$(", at):
            at = _end(text, at + 2)
            if at < 0:
                return -1
        at += 2 if text[at] == "\\" else 1
    return -1


def _commands(tokens: Sequence[str]) -> list[str]:
    return [bare(token) for before, token in zip(["", *tokens], tokens, strict=False) if not before or is_end(before) or before in _BEFORE]


def _start(made: Sequence[str]) -> int:
    """Where the pipeline begins at whose end a list of tokens stands."""
    return next((at + 1 for at in range(len(made) - 1, -1, -1) if made[at] in _BEFORE), 0)


def _pipeline(made: Sequence[str]) -> list[str]:
    return list(made[_start(made) :])


def _is_read(head: Sequence[str]) -> bool:
    """Whether ``while`` has nothing but ``read`` in its head."""
    return head[0] == "read" or (re.fullmatch(r"IFS=(?:[,:;|]|'[^']'|\"[,:;|]\")?", head[0]) is not None and head[1] == "read")


def _shown(command: Sequence[str], variable: re.Pattern[str]) -> list[str] | None:
    """A command that only shows or compares a name; None: it is another."""
    if command[0] not in ("echo", "printf") or not all(may_show(command, at) for at, word in enumerate(command) if variable.search(word)):
        return None
    behind = ["", *command[:-1]]
    if any(before[-1:] in ("<", ">", "|", "&") and variable.search(word) for before, word in zip(behind, command, strict=True)):
        return None
    return [variable.sub("x", word) for word in command]


def _whole(command: Sequence[str], variable: re.Pattern[str]) -> list[str] | None:
    """A command with ``{}`` for the variable, where that is a whole word wherever it stands."""
    words = ["{}" if variable.fullmatch(bare(word)) and "'" not in word else word for word in command]
    return None if any(variable.search(word) for word in words) else words


def computed(text: str, mark: str) -> tuple[str, frozenset[str]] | None:
    """Puts ``mark`` in place of each ``$((...))``; with the names in them. None: one of them may do more than compute.

    A variable is evaluated as an expression of its own, and what stands in brackets there may run a command (bash(1), ARITHMETIC).
    """
    made, last, names = list[str](), 0, set[str]()
    for start, end in substitutions(text, ("arithmetic_expansion",)) if "$((" in text else ():
        if _COMPUTES.fullmatch(text, start, end) is None:
            return None
        names |= set(_VARIABLE.findall(text, start, end))
        made += [text[last:start], mark]
        last = end
    return "".join([*made, text[last:]]), frozenset(names - _NUMBERED)


def are_numbers(names: Collection[str], tokens: Sequence[str], mark: str) -> bool:
    """Whether a text sets each of these names, to numbers or what it computed, and gives it to no builtin that might set it."""
    return all(_is_number(name, tokens, mark) for name in names)


def _is_number(name: str, tokens: Sequence[str], mark: str) -> bool:
    is_set, begun = False, begun_at(list(tokens))
    for at, token in enumerate(tokens):
        bare = re.sub(r"['\"\\]", "", token)
        if bare == name and tokens[at - 1 : at] == ["for"]:
            items = tokens[at + 2 : next((end for end in range(at, len(tokens)) if tokens[end] == "do"), at)]
            if not items or not all(re.fullmatch(r"\d+|[;\n]|\{\d+\.\.\d+\}|\$\(seq [\d ]+\)", item) for item in items):
                return False
            is_set = True
        elif bare == name or re.match(rf"{name}(?:\+=|\[)|.*\$\{{{name}[^}}]", bare, re.DOTALL):
            return False
        elif bare.startswith(f"{name}="):
            if bare != f"{name}={mark}" and re.fullmatch(r"-?\d+", bare.partition("=")[2]) is None:
                return False
            is_alone = all(is_end(one) or one in CLOSES for one in tokens[at + 1 : at + 2])  # for a command alone it is not set here
            is_set = is_set or (is_alone and (begun[at] or tokens[at - 1 : at] == ["export"]))
    return is_set
