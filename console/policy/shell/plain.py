"""Rewrite a text in which the shell would do more than run simple commands into simple commands that stand for it.

It reads here-documents without substitution, variables and arrays with plain values, loops over named words, conditions, groups,
``[ … ]`` and the activation of a virtual environment. Every command of the text is in the result, whichever would run. What is not
certain is not rewritten. The result is judged in place of the text, and never executed.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace
from itertools import pairwise

from console.policy.dangers import ELSEWHERE
from console.policy.shell.lines import is_built_of
from console.policy.shell.substituted import Substituted, are_numbers, computed
from console.policy.shell.tokens import (
    CHOSEN,
    CLOSES,
    COMPARED,
    OPENS,
    TOKENS_MAX,
    bare,
    begun_at,
    command_around,
    cut_tokens,
    is_end,
    may_show,
    without_arrays,
)

_ITEMS_MAX = 20
_LITERAL = re.compile(
    r"(?P<before>[^'\"\\`$<>(){}#\n]*)\"\$\(cat <<'(?P<end>[A-Z_]{1,20})'\n(?P<text>.*?\n)(?P=end)\n *\)\"(?P<after>.*)\Z", re.DOTALL
)
"""``"$(cat <<'EOF' ...)"`` is a literal text, since the end is quoted (bash(1), Here Documents). No quote is open before it."""
_NODES = frozenset({
    "ansi_c_string", "subscript",
    "for_statement", "if_statement", "elif_clause", "else_clause", "while_statement", "compound_statement", "subshell", "do_group",
    "variable_name", "variable_assignment", "declaration_command", "test_command", "negated_command", "simple_expansion",
    "special_variable_name", "expansion", "brace_expression", "command_substitution", "unary_expression", "binary_expression",
    "test_operator", "process_substitution", "herestring_redirect", "heredoc_redirect", "heredoc_start", "heredoc_body", "heredoc_content",
    "heredoc_end", "case_statement", "case_item", "extglob_pattern", "array",
})  # fmt: skip
"""What the second reader may find (tree-sitter-bash, node types) beside what simple commands are made of."""
_VALUE = r"(?:'[^']*'|\"[^\"$`\\]*\"|[^\s'\"$`\\;|&<>()])*"
_ASSIGNED = re.compile(rf"([A-Za-z_]\w*)=({_VALUE})\Z")
_PLAIN = re.compile(r"[\w./@%+=:,-]+\Z")
_PATTERN = re.compile(r"[\w./@%+=:,*?\[\]-]+\Z")
_BUILTINS = frozenset({":", "set", "exit", "wait", "break", "continue", "jobs"})
"""They run no program, and what comes after them is judged as if it ran."""
_OWN = {"history": r"\d+", "ulimit": r"-[SHacdefilmnpqrstuvx]+|\d+|unlimited", "umask": r"-S|0?[0-7]{3}", "disown": r"%[\d%+-]?|-[ahr]"}
"""Builtins that change this shell alone, with the words that they are known by."""
_READ_NO_VARIABLE = frozenset({"echo", "printf", "test", "true", "false", "pwd"})
"""Builtins that do the same whatever the variables of their environment are."""
_SHOWN = re.compile(
    r"\$(?:[?!]|(?:{0})\b|\{{(?:{0})\}}|\{{PIPESTATUS\[[\d@*]\]\}})".format("HOME|PATH|PWD|USER|SHELL|LANG|TERM|HOSTNAME|OLDPWD")
)
"""Variables that hold no secret, and ``$?``, where they are only printed."""
_HARMLESS = re.compile(
    r"(?:(?!(?:cd|f|man|mail|module_)?path\b|home\b|ifs\b|prompt\b|shell\b|argv\b|cwd\b|\w*proxy\b)[a-z][a-z0-9_]{0,11}|[A-Z]|FOO)=.*"
    r"|(?:CI|DEBUG|VERBOSE|TZ|LANG|LANGUAGE|LC_[A-Z]+|COLUMNS|LINES|TERM|NO_COLOR|FORCE_COLOR|CLICOLOR|NODE_ENV|RAILS_ENV|RACK_ENV|APP_ENV|PORT)="
    r"(?:\w[\w+@-]*(?:[./:,]\w[\w+@-]*)*)?|GIT_(?:PAGER=cat|(?:SEQUENCE_)?EDITOR=(?:true|:|cat))"
    r"|(?:PG(?:USER|PASSWORD|DATABASE|PORT)|MYSQL_PWD|REDISCLI_AUTH)=[\w.-]*|PGHOST=(?:localhost|127\.0\.0\.1)"
    r"|(?:VERSION|BRANCH|COMMIT|SHA|HASH|FILES?|OUT|OUTPUT|RESULTS?|COUNT|TAG|NAME|DATE|NUM|TOTAL|LINE|STATUS|CODE|START|END|MSG|MESSAGE|TEXT"
    r"|SIZE|SRC|DEST|DST|TARGET|LOG|DIR|ROOT|BASE|REPO|URL|KEY|VALUE|ITEM|INPUT|DATA|ARGS|FOLDER|PROJECT|APP|(?:[A-Z]+_)?PID|(?:[A-Z]+_)?EXIT(?:_CODE)?|RC|TMP|WORK|PKG)=.*",
    re.ASCII | re.DOTALL,
)
"""Variables that name no file, program or host to the programs that are described (environ(7) and their manuals)."""
_NUMBER = re.compile(r"\$\((?:nproc|date \+%s)\)")
_OF_SHELL = re.compile(
    r"BASH\w*|CDPATH|ENV|EXECIGNORE|GLOB\w+|HOME|IFS|OLDPWD|PWD|POSIXLY_CORRECT|PROMPT_\w+|PS[0-4]|SHELLOPTS|_|[a-z]*path|ifs|home"
)
"""Variables by which the shell itself reads the rest of the text otherwise (bash(1), Shell Variables)."""
_OWN_JOB = re.compile(r"%[\d%+-]?|\$!|\"\$!\"")
"""What the shell itself started in the background (bash(1), JOB CONTROL)."""
_SHOWING = frozenset({"echo", "printf", "test", "[", "[["})
_MOVES = frozenset({"cd", "pushd", "popd", "chdir"})
_TOP = "$(git rev-parse --show-toplevel)"
_UNKNOWN = "${99}"
"""What stands for a name with blanks in it, perhaps: it may be shown, and in all other places it asks. No text can set this variable."""

_COMPUTED = re.compile(r"([A-Za-z_]\w*)=(\"?)\$(?:\{99\}|\?)\2")


@dataclass(frozen=True, slots=True)
class Plain:
    """What stands for a text."""

    text: str
    is_literal: bool = False
    """It means exactly the same, so that it may be executed."""
    changes: bool = False
    """A variable is set that other programs may read: of programs of the workspace alone that is no matter."""
    sourced: tuple[str, ...] = ()
    """Files that the shell itself reads."""
    lists: bool = False
    """A command is given names that another one lists."""
    changed: frozenset[str] = frozenset()
    """Programs that get such a variable for themselves alone; ``same``: those that get none."""
    same: frozenset[str] = frozenset()
    names_others: bool = False
    """A variable names another machine, or what others use."""
    groups: tuple[str, ...] = ()
    """Subshells that work in folders of their own: each begins where the text begins."""

    def fits(self, others: frozenset[str]) -> bool:
        """Whether no variable is set that one of these programs may read, which are none of the workspace."""
        rest = others - _READ_NO_VARIABLE
        return not (rest and self.changes) and (not self.changed or (rest <= self.same and not rest & self.changed))


def plainer(text: str, top: str = "") -> Plain | None:
    """Rewrites a text; None: it holds something else. ``top``: the folder of the repository that it begins in."""
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text):
        return None
    if found := _LITERAL.match(text):
        if found["end"] in found["text"]:  # it may end there, as one of the versions of bash reads it
            return None
        return Plain(f"{found['before']}{shlex.quote(found['text'].rstrip(chr(10)))}{found['after']}", is_literal=True)
    is_moved = re.search(r"\b(?:cd|pushd)\b.*[;&|\n].*\$\(git rev-parse --show", text, re.DOTALL) is not None
    given = text if is_moved or not _PLAIN.match(top) else text.replace(_TOP, top)
    substituted, counted = Substituted(cut_tokens), computed(_NUMBER.sub("1", given), _UNKNOWN)
    tokens = substituted.tokens(counted[0]) if counted is not None and is_built_of(counted[0], _NODES) else None
    tokens = without_arrays(tokens) if tokens is not None else None
    if tokens is None or counted is None or not are_numbers(counted[1], tokens, _UNKNOWN):
        return None
    numbers = counted[1] | {name for name in substituted.counted if are_numbers((name,), tokens, _UNKNOWN)}
    valued = _with_values(tokens, substituted.unknown, numbers)
    looped = _without_loops(valued) if valued is not None else None
    if looped is None:
        return None
    tokens, groups = _without_groups(looped)
    plain = _Statements(tokens).plain()
    if plain is None or (plain.text == text and not groups):
        return None
    return replace(plain, lists=substituted.has_names, groups=groups)


def why_not(text: str, why: str) -> str:
    """Return why a text is refused, in words for what its author wrote: of a loop's variable the text has our own mark."""
    return "which names the variable of the loop stands for is not certain; write it in double quotes" if _UNKNOWN in text else why


def is_rewritten(argv: tuple[str, ...]) -> bool:
    """Whether a simple command is a builtin that is left out, or an ``env`` that sets variables."""
    if argv[0] == "kill":
        return any(word.startswith("%") for word in argv)
    sets = argv[0] == "env" and len(argv) > 2 and _ASSIGNED.match(argv[1]) is not None
    return sets or argv[0] in _BUILTINS or argv[0] in (".", "source", "type", "xargs", "pushd", "popd", *_OWN)


def _with_values(tokens: list[str], unknown: set[str], numbers: frozenset[str]) -> list[str] | None:
    """The same with its own variables as what they hold, where that is certain; what a command printed is shown or compared at most."""
    begun, made, command = begun_at(tokens), list[str](), ""
    has_moves = any(bare(token) in _MOVES for token in tokens)
    values: dict[str, str | None] = {"PWD": ".", **dict.fromkeys((_UNKNOWN[2:-1], *numbers))}
    for at, token in enumerate(tokens):
        command, word = bare(token) if begun[at] else command, token
        if begun[at] and (number := _COMPUTED.fullmatch(token)):
            unknown.add(number[1])
            word = f"{number[1]}=1"
        is_shown = "$" in word and command in _SHOWING and not (at and re.search(r"[<>|&]\Z", tokens[at - 1]))
        is_safe = is_shown and may_show(*command_around(tokens, begun, at))
        for name, value in values.items():
            is_any = value is None and not (is_safe or (is_shown and name in (*numbers, _UNKNOWN[2:-1])))
            if "$" not in word or is_any or not re.search(rf"\$(?:{name}(?!\w)|\{{{name}\}})", word):
                continue
            put = _put(word, name, "x" if value is None else value)
            if put is None:
                return None
            word = put
        if is_safe and command in ("test", "[", "[["):  # nothing of it is shown
            word = COMPARED.sub("x", word) if "'" not in word else word
        made.append(word)
        assigned = _ASSIGNED.match(word) if begun[at] or tokens[at - 1 : at] == ["export"] else None
        if assigned is not None and assigned[1] not in numbers and _is_set_once(tokens, begun, at, assigned[1]):
            value = bare(assigned[2])
            is_known = assigned[1] not in unknown and _PLAIN.match(value) is not None and not (has_moves and word != token)
            values[assigned[1]] = value if is_known else None
    return made


def _is_set_once(tokens: list[str], begun: list[bool], at: int, name: str) -> bool:
    """Whether a variable is set here for certain, for all that comes after it, and nowhere else."""
    sets = re.compile(rf"{name}(?:\Z|\+?=|\[)")
    is_inside = any(tokens[n] in OPENS | {"for"} and begun[n] for n in range(at))
    joins = [token for token in tokens[:at] if is_end(token)][-1:]
    after = {token for token in tokens[at:] if is_end(token)}
    is_reached = joins in ([], [";"], ["\n"]) or (joins == ["&&"] and not after & {";", "\n", "||", "&"})
    is_alone = tokens[at + 1 : at + 2] in ([], [";"], ["\n"], ["&&"])
    return is_alone and is_reached and not is_inside and sum(sets.match(bare(token)) is not None for token in tokens) == 1


def _without_groups(tokens: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """The same with ``true`` for each subshell that works in another folder, and these subshells, where no ``cd`` stands before them."""
    begun, made, groups, at = begun_at(tokens), list[str](), list[str](), 0
    is_whole = tokens[:1] == ["("] and _closing(tokens, 0) == len(tokens) - 1
    while at < len(tokens) and not is_whole:
        end = _closing(tokens, at) if tokens[at] == "(" and begun[at] else 0
        if bare(tokens[at]) in _MOVES:
            break
        if end and any(bare(token) in _MOVES for token in tokens[at:end]):
            groups.append(_written(tokens[at + 1 : end]))
            made.append("true")
            at = end + 1
        else:
            made.append(tokens[at])
            at += 1
    return [*made, *tokens[at:]], tuple(groups)


def _closing(tokens: list[str], at: int) -> int:
    """Where a subshell that begins there ends; 0: nowhere."""
    depth = 0
    for end in range(at, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[end], 0)
        if not depth:
            return end
    return 0


def _without_loops(tokens: list[str]) -> list[str] | None:
    """The same with the body of each ``for`` once for each word, the innermost first; None: what it goes over is not certain."""
    while True:
        begun = begun_at(tokens)
        heads = [at for at, begins in enumerate(begun) if begins and tokens[at] == "for"]
        if not heads:
            return tokens
        unrolled = _unrolled(tokens, begun, heads[-1])
        if unrolled is None or len(unrolled) > TOKENS_MAX:
            return None
        tokens = unrolled


def _unrolled(tokens: list[str], begun: list[bool], at: int) -> list[str] | None:
    do = next((n for n in range(at, len(tokens)) if tokens[n] == "do" and begun[n]), 0)
    done = next((n for n in range(do, len(tokens)) if tokens[n] == "done" and begun[n]), 0)
    if not do or not done or tokens[at + 2 : at + 3] != ["in"] or not _is_only_read(tokens, begun, at, done):
        return None
    items = [item for token in tokens[at + 3 : do] if not is_end(token) for item in _items(token)]
    if not items or len(items) > _ITEMS_MAX or "" in items:
        return None
    bodies = list[str]()
    for item in items:
        for before, token in pairwise(tokens[do:done]):
            is_moved = before == "cd" and token == f'"${tokens[at + 1]}"'  # each of the names, whichever it is, is one folder
            put = item if is_moved else _put(token, tokens[at + 1], item)
            if put is None:
                return None
            bodies.append(put)
        bodies += [] if is_end(bodies[-1]) else [";"]
    return [*tokens[:at], "{", *bodies, "}", *tokens[done + 1 :]]


def _is_only_read(tokens: list[str], begun: list[bool], at: int, done: int) -> bool:
    """Whether the variable of a loop is one that no program reads, and keeps its value within the loop."""
    name, around = tokens[at + 1], list[str]()
    for n in range(at):
        if begun[n] and tokens[n] in ("for", "while", "until"):
            around.append(tokens[n + 1])
        elif begun[n] and tokens[n] == "done" and around:
            around.pop()
    sets = re.compile(rf"{name}(?:\Z|\+?=|\[)")
    is_set = any(sets.match(bare(token)) for token in tokens[at + 2 : done])
    return bool(_HARMLESS.fullmatch(f"{name}=")) and name not in around and not is_set


def _items(token: str) -> list[str]:
    """What a word of a loop's list stands for; an empty one: that is not certain."""
    if span := re.fullmatch(r"\{(\d{1,4})\.\.(\d{1,4})\}", token):
        return [str(one) for one in range(int(span[1]), min(int(span[2]), int(span[1]) + _ITEMS_MAX) + 1)]
    if span := re.fullmatch(r"\$\(seq (\d{1,4})(?: (\d{1,4}))?\)", token):
        first, last = (int(span[1]), int(span[2])) if span[2] else (1, int(span[1]))
        return [str(one) for one in range(first, min(last, first + _ITEMS_MAX) + 1)]
    bare = token[1:-1] if re.fullmatch(r"'[^']*'|\"[^\"]*\"", token) else token
    return [bare] if (_PLAIN if bare is not token else _PATTERN).match(bare) else [""]


def _put(token: str, name: str, value: str) -> str | None:
    """A word with a value in place of a variable; None: the variable stands in single quotes, or part of it is wanted."""
    made, quote, at = list[str](), "", 0
    variable = re.compile(rf"\$(?:{name}(?!\w)|\{{{name}\}})")
    while at < len(token):
        found = variable.match(token, at)
        if found is not None and quote == "'":
            return None
        if found is not None and _PLAIN.match(value) is None:  # a pattern; a name without quotes around it is split at its blanks
            made.append(f'"{value}"' if quote else _UNKNOWN)
            at = found.end()
        elif found is not None:
            made.append(value)
            at = found.end()
        elif token[at] == "\\" and quote != "'":
            made.append(token[at : at + 2])
            at += 2
        else:
            quote = ("" if quote == token[at] else quote or token[at]) if token[at] in "'\"" and quote in ("", token[at]) else quote
            made.append(token[at])
            at += 1
    return "".join(made)


@dataclass(slots=True)
class _Statements:
    """Simple commands of a text, made one by one."""

    tokens: list[str]
    names: list[str] = field(default_factory=list)
    sourced: list[str] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)
    same: set[str] = field(default_factory=set)
    names_others: bool = False
    is_without: bool = False
    """A command that runs no program was left out."""

    def plain(self) -> Plain | None:
        """The commands joined again; None: that would mean something else."""
        made, joined, commands = list[str](), "", list[str]()
        if self._is_moved_inside():
            return None  # where it works after the group is not where the group worked
        for token in [*self._flat(), ";"]:
            if not is_end(token):
                made.append(token)
                continue
            kept = self._kept(made)
            if kept is None or (made and not kept and ("|" in (joined, token) or token == "||")):
                return None
            self.is_without = self.is_without or bool(made and not kept)
            if kept:
                commands += [joined or ";", _written(kept)] if commands else [_written(kept)]
            token = ";" if token == "\n" else token
            joined, made = token if kept or not commands or token == joined else ";", []
        ended = [joined] if joined == "&" and commands else []
        text = " ".join([*commands, *ended]) or ("true" if self.is_without else "")
        changed, same = frozenset(self.changed), frozenset(self.same)
        sourced = tuple(self.sourced)
        return (
            Plain(text, changes=bool(self.names), sourced=sourced, changed=changed, same=same, names_others=self.names_others)
            if text
            else None
        )

    def _is_moved_inside(self) -> bool:
        """A ``cd`` stands behind the beginning of a group, and where that leads is not certain: in a loop, a pipe, or behind ``!``."""
        begun = [at for at, begins in enumerate(begun_at(self.tokens)) if begins]
        groups = [at for at in begun if self.tokens[at] in OPENS]
        moves = [at for at, token in enumerate(self.tokens) if bare(token) in _MOVES]
        is_whole = groups == [0] and self.tokens[0] in ("(", "{") and self.tokens[-1] in (")", "}")
        if not groups or not moves or moves[-1] < groups[0] or is_whole:
            return False
        pipes = {"|", "|&", "&"}
        is_piped = any(self.tokens[at - 1] in pipes for at in groups if at) or any(
            token in CLOSES and self.tokens[at + 1 : at + 2] and self.tokens[at + 1] in pipes for at, token in enumerate(self.tokens)
        )
        return is_piped or any(self.tokens[at] in ("while", "until", "do", "!", "(") for at in groups)

    def _flat(self) -> list[str]:
        """Without the words of conditions, loops and groups. What ends one ends its last command, so that a redirect finds it."""
        flat, is_behind = list[str](), False
        has_moves = any(bare(token) in _MOVES for token in self.tokens)
        for token, begins in zip(self.tokens, begun_at(self.tokens), strict=True):
            # What follows a group with a ``cd`` in it runs wherever that led: it is joined as what runs in any case.
            token, is_behind = (";" if is_behind and token in ("&&", "||") else token), is_behind and not is_end(token)
            if token in CLOSES and (token == ")" or begins):
                is_behind = has_moves
                while flat and is_end(flat[-1]):
                    flat.pop()
            elif not (token in OPENS and begins):
                flat.append(token)
            elif flat and not is_end(flat[-1]):
                flat.append(";")
        return flat

    def _kept(self, words: list[str]) -> list[str] | None:
        """The same as ``_left``, with the variables that are set for a command alone noted for that one."""
        before = list(self.names)
        kept = self._left(words)
        if kept and words[:1] != ["export"]:
            name = bare(kept[0]).rpartition("/")[2]
            (self.changed if len(self.names) > len(before) else self.same).add(name)
            self.names = before
        return kept

    def _left(self, words: list[str]) -> list[str] | None:
        """What is left of a command that runs a program; empty: it runs none. None: it is none of those that are known."""
        while words and (_ASSIGNED.match(words[0]) or re.fullmatch(r"[A-Za-z_]\w*=\$!", words[0])):
            if not self._is_set(words[0]):
                return None
            words = words[1:]
        if words[:1] == ["kill"] and words[-2:] == ["2>", "/dev/null"]:
            words = words[:-2]
        if words[:1] == ["kill"] and len(words) > 1 and all(map(self._is_own_job, words[1:])):
            return ["true"]
        if words[:1] == ["env"] and len(words) > 1 and _ASSIGNED.match(words[1]):
            # A program of the name ``cd`` moves nothing.
            return None if _MOVES & {*map(bare, words)} else self._left(words[1:])
        if words[:1] == ["export"]:
            return self._exported(words[1:])
        if words[:1] in (["."], ["source"]):
            self.sourced += words[1:]
            return [] if len(words) == 2 and _PLAIN.match(words[1]) and not _MOVES & {*map(bare, self.tokens)} else None
        return _simple(words)

    def _is_own_job(self, word: str) -> bool:
        """Whether a word of ``kill`` is an option, or means what this text started in the background."""
        jobs = [token.partition("=")[0] for token in self.tokens if token.endswith("=$!")]
        name = re.fullmatch(r"\"?\$\{?(\w+)\}?\"?", word)
        is_once = name is not None and sum(token.startswith(f"{name[1]}=") for token in self.tokens) == 1
        return bool(re.fullmatch(r"-[A-Z0-9]+", word) or _OWN_JOB.fullmatch(word) or (name and name[1] in jobs and is_once))

    def _exported(self, words: list[str]) -> list[str] | None:
        return [] if words and all(_ASSIGNED.match(word) and self._is_set(word) for word in words) else None

    def _is_set(self, word: str) -> bool:
        """Notes a variable that programs may read; False: the shell itself reads it."""
        name, _, value = word.partition("=")
        self.names_others = self.names_others or ELSEWHERE.search(f"{name}={bare(value)}") is not None
        is_harmless = _HARMLESS.fullmatch(f"{name}={bare(value)}") is not None
        self.names += [] if is_harmless else [name]
        return is_harmless or _OF_SHELL.fullmatch(name) is None


def _simple(words: list[str]) -> list[str] | None:
    """What is left of a command without variables, as ``_kept`` says."""
    name = words[0] if words else ""
    if (name == ":" and len(words) > 1) or re.search(r"[<>]\Z|>\|\Z", name):
        return ["true", *words[name == ":" :]]  # it makes or empties a file
    if name in ("pushd", "popd"):
        return ["cd", *words[1:]] if name == "pushd" and len(words) == 2 else ["cd", "-"] if words == ["popd"] else None
    if name in _OWN:  # they show, or bound what this shell alone starts: a history is empty where no person types
        return ["true"] if all(re.fullmatch(_OWN[name], word) for word in words[1:]) else None
    if name == "type":
        words = words[:-2] if words[-2:] == ["2>", "/dev/null"] else words
        return [] if all(map(_PLAIN.match, words)) else None
    if name in ("echo", "printf"):
        behind = ["", *words[:-1]]  # what a redirect names is a file
        return [word if before[-1:] in ("<", ">", "|", "&") else _SHOWN.sub("x", word) for before, word in zip(behind, words, strict=True)]
    if name == "exit" and len(words) == 2 and re.fullmatch(r"\"?\$\{?(?:\w+|\?)\}?\"?", words[1]):
        return []
    if name in _BUILTINS:
        known = r"[-+][aeuxo]+|pipefail|errexit|nounset|xtrace" if name == "set" else r"-?\d+|%[\d%+-]?|\"?\$!\"?|-[lnrp]+"
        return [] if all(re.fullmatch(known, word) for word in words[1:]) else None
    return _test(words) if name in ("[", "[[") else words


def _test(words: list[str]) -> list[str] | None:
    """``[ ... ]`` and ``[[ ... ]]`` as ``test ...``; None: that would mean something else."""
    is_double, tested = words[0] == "[[", [("0" if word == "$?" else word) for word in words[1:-1]]
    if not tested or words[-1] != ("]]" if is_double else "]"):
        return None
    if is_double and len(tested) == 1 and (tested[0][:1] == '"' or CHOSEN.fullmatch(tested[0])):
        return ["test", "-n", *tested]
    if is_double and len(tested) == 3 and tested[1] in ("=", "==", "!="):  # what stands behind it is a pattern that is compared
        return ["test", tested[0], "=", "x"] if CHOSEN.fullmatch(tested[2]) else None
    return ["test", *tested] if not is_double or (len(tested) == 2 and tested[0][:1] == "-") else None


def _written(words: list[str]) -> str:
    """A command as text; what a redirect names stays behind it."""
    return "".join(word if re.search(r"[<>]&?\Z|[<>]\|\Z", word) else f"{word} " for word in words).rstrip()
