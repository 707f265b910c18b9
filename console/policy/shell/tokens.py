"""Cut a text of the shell into words, redirects and operators, without here-documents, comments, arrays and the words of ``case``.

What is not certain is not cut.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

TOKENS_MAX = 4000
_TOKEN = re.compile(
    r"""(?P<blank>[ \t]+(?:\\\n[ \t]*(?=[^\s#\\]))*)
    | (?P<here><<(?P<tabs>-?)(?!<)[ \t]*(?:'(?P<quoted>\w+)'|"(?P<double>\w+)"|\\(?P<escaped>\w+)|(?P<bare>\w+))(?=[ \t\n;|&)<>]))
    | (?P<string><<<[ \t]*(?:'[^']*'|"[^"$`\\]*"|[\w./@%+=:,-]+)(?=[ \t\n;|&)]|\Z))
    | (?P<redirect>[0-9]?(?:&>>|&>|>>|>\||>&|<&|<(?![<(>])|>(?!\()))
    | (?P<end>&&|\|\||\|&|;;(?!&)|[()]|;(?![;&])|[|&\n](?!;))
    | (?P<word>(?:'[^']*'|"(?:[^"\\`$]|\\[^\n]|\$(?!\())*"|\\[^\n]|\$'(?:[^'\\]|\\[tn\\])*'
    |\$\(seq\ \d{1,4}(?:\ \d{1,4})?\)|\$(?![('"\[])|[^\s'"\\`$;|&()<>])+)""",
    re.VERBOSE | re.DOTALL,
)
_ANSI = re.compile(r"(?P<ansi>\$'(?:[^'\\]|\\[tn\\])*')|'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.", re.DOTALL)
_BRACES = re.compile(r"((?![A-Za-z_]\w*=)[\w./@%+:=-]*)\{([\w./@%+:=-]+(?:,[\w./@%+:=-]+)+)\}([\w./@%+:=*-]*)")
_ARRAY = re.compile(
    r"([a-z]|arr|array|list|items|names|words|files|dirs|folders|pkgs|packages|tests|urls|targets|services|versions|repos|branches|ids|tags"
    r"|colors|values|ports|pages|models|tasks|steps|roots|langs)=",
    re.IGNORECASE,
)
"""What an array may be called that is no variable of a shell or of a program (zshparam(1) and zshmodules(1) have many)."""
_ITEM = re.compile(r"[\w./@%+:,-][\w./@%+=:,-]*")
_CHANGES = frozenset({
    "source", "eval", "read", "mapfile", "readarray", "declare", "typeset", "local", "unset", "set", "let", "getopts", "export", "readonly",
    "select", "coproc", "wait", "alias", "exec",
})  # fmt: skip
"""Builtins that may set or unset a variable which they name in a way that is not seen."""
_FORMAT = re.compile(r"'[^'-]|\"[^\"$\\-]|[%\w]")
"""The beginning of a format of printf, which is no option."""
OPENS, CLOSES = frozenset({"if", "then", "elif", "else", "while", "until", "do", "{", "(", "!"}), frozenset({"fi", "done", "}", ")"})
CHOSEN = re.compile(r"(?:[\w.*?\[\]/@%+:=,!^-]|'[^']*'|\"[^\"$`\\]*\"|\\[^\n])+")
"""A pattern of ``case``, which is only compared (bash(1), Compound Commands)."""
_COMPARES = frozenset({"=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
COMPARED = re.compile(r"\$(?:\w+|[#?@*!]|\{\w+(?:[#%]{1,2}[^}$`]*|:?-[\w.-]*)?\})")


def bare(token: str) -> str:
    """A word without quotes, at whichever places they stand."""
    return re.sub(r"['\"\\]", "", token)


def cut_tokens(text: str) -> list[str] | None:
    """Words, redirects and operators as they are written, without here-documents and comments."""
    found, at, ends = list[str](), 0, list[tuple[str, bool, str]]()
    while at < len(text):
        if text.startswith(("((", "))"), at):  # arithmetic
            return None
        if text[at] == "#" and (at == 0 or text[at - 1] in " \t\n;&|("):
            stop = text.find("\n", at)
            at = len(text) if stop < 0 else stop
            continue
        token = _TOKEN.match(text, at)
        if token is None or _is_odd(token, text[at - 1 : at], bool(ends)):
            return None
        at = token.end()
        if token["here"]:
            quoted = token["quoted"] or token["double"] or token["escaped"]
            ends.append((quoted or token["bare"], bool(quoted), "\\t*" if token["tabs"] else ""))
        elif not token["blank"] and not token["string"]:
            found += _braced(_ANSI.sub(_decoded, token.group()) if "$'" in token.group() else token.group())
        if token["end"] == "\n":
            for end, is_quoted, tabs in ends:
                body = re.compile(rf"(?P<body>(?:.*\n)*?){tabs}{end}(?:\n|\Z)").match(text, at)
                if body is None or (not is_quoted and re.search(r"[$`\\]", re.sub(r"\\[$`\\]", "", body["body"]))):
                    return None
                at = body.end()
            ends = []
    return _without_cases(_tested(found) if "[[" in found else found) if not ends and len(found) <= TOKENS_MAX else None


def _tested(tokens: list[str]) -> list[str]:
    """The same with ``[[ A ]] && [[ B ]]`` for ``[[ A && B ]]`` (bash(1), Compound Commands)."""
    made, is_inside = list[str](), False
    for at, token in enumerate(tokens):
        begins = token == "[[" and begun_at([*made, token])[-1]
        end = tokens.index("]]", at) if begins and "]]" in tokens[at:] else at
        is_inside = (
            (is_inside or not {"(", ")", "|", "&", ";", "\n", ";;"} & set(tokens[at:end])) if begins else is_inside and token != "]]"
        )
        made += ["]]", token, "[["] if is_inside and token in ("&&", "||") else [token]
    return made


def _without_cases(tokens: list[str]) -> list[str] | None:
    """The same with ``echo WORD; { ... }`` for each ``case``, and in it what each of its patterns leads to."""
    made, at = list[str](), 0
    while at < len(tokens):
        if tokens[at] != "case" or not begun_at([*made, "case"])[-1]:
            made.append(tokens[at])
            at += 1
        elif (found := _choices(tokens, at)) is None:
            return None
        else:
            made += found[0]
            at = found[1]
    return made if ";;" not in made else None


def _choices(tokens: list[str], at: int) -> tuple[list[str], int] | None:
    """What stands for the ``case`` that begins there, and where it ends; None: something in it is not certain."""
    if tokens[at + 2 : at + 3] != ["in"]:
        return None
    made, at = ["echo", COMPARED.sub("x", tokens[at + 1]), ";", "{"], at + 3
    while at < len(tokens):
        if tokens[at] == "\n":
            at += 1
        elif tokens[at] == "esac":
            return [*made, "true", ";", "}"], at + 1
        elif (end := _chosen(tokens, at)) and (body := _choice(tokens, end)):
            made += [*body[0], ";"]
            at = body[1]
        else:
            return None
    return None


def _chosen(tokens: list[str], at: int) -> int:
    """Behind the patterns that begin there; 0: they are not certain."""
    at += tokens[at] == "("
    end = next((n for n in range(at, len(tokens)) if tokens[n] == ")"), 0)
    is_plain = all(CHOSEN.fullmatch(word) if n % 2 == 0 else word == "|" for n, word in enumerate(tokens[at:end]))
    return end + 1 if (end - at) % 2 and is_plain and "esac" not in tokens[at:end] else 0


def _choice(tokens: list[str], at: int) -> tuple[list[str], int] | None:
    """What is done behind a pattern, and where the next one begins."""
    made = list[str]()
    while at < len(tokens) and tokens[at] != ";;":
        begins = begun_at([*made, tokens[at]])[-1]
        if begins and tokens[at] == "esac":
            break
        inner = _choices(tokens, at) if begins and tokens[at] == "case" else ([tokens[at]], at + 1)
        if inner is None:
            return None
        made += inner[0]
        at = inner[1]
    while made and is_end(made[-1]):
        made.pop()
    while made and is_end(made[0]):
        made.pop(0)
    return made or ["true"], at + (tokens[at : at + 1] == [";;"])


def without_arrays(tokens: list[str]) -> list[str] | None:
    """The same with the words of each array in place of ``"${name[@]}"`` (bash(1), Arrays); None: that is not certain.

    The text begins with the arrays, and nothing in it names them otherwise.
    """
    arrays = dict[str, list[str]]()
    while tokens[1:2] == ["("] and (name := _ARRAY.fullmatch(tokens[0])) and ")" in tokens:
        end = tokens.index(")")
        items = [bare(token) for token in tokens[2:end] if token != "\n"]
        if (
            not items
            or name[1] in arrays
            or tokens[end + 1 : end + 2] not in ([";"], ["\n"], ["&&"])
            or not all(map(_ITEM.fullmatch, items))
        ):
            return None
        arrays[name[1]] = items
        tokens = tokens[end + 2 :]
        while tokens[:1] == ["\n"]:
            tokens = tokens[1:]
    if any(token.endswith("=") and behind == "(" for token, behind in pairwise(tokens)):
        return None  # an array that is set elsewhere
    return _with_items(tokens, arrays) if arrays else tokens


def _with_items(tokens: list[str], arrays: dict[str, list[str]]) -> list[str] | None:
    begun, made = begun_at(tokens), list[str]()
    for at, token in enumerate(tokens):
        word, before = bare(token), "".join(tokens[at - 1 : at])
        whole = re.fullmatch(r'"\$\{(\w+)\[@\]\}"', token)
        is_first = begun[at] or "=" in before or before in ("command", "builtin")
        is_changed = word in _CHANGES or (is_first and (word == "." or "$" in word)) or (before == "printf" and not _FORMAT.match(token))
        if whole is not None and whole[1] in arrays and not is_first and not re.search(r"[<>]&?\Z|[<>]\|\Z", before):
            made += arrays[whole[1]]
        elif is_changed or any(re.search(rf"(?<!\w){name}(?!\w)", word) for name in arrays):
            return None
        else:
            made.append(token)
    return made


def _decoded(piece: re.Match[str]) -> str:
    """``$'a\\tb'`` as a plain string (bash(1), QUOTING); other pieces of a word as they are."""
    signs = {"\\t": "\t", "\\n": "\n", "\\\\": "\\"}
    return re.sub(r"\\[tn\\]", lambda sign: signs[sign.group()], piece.group()[1:]) if piece["ansi"] else piece.group()


def _braced(word: str) -> list[str]:
    """The words that ``a{b,c}d`` stands for (bash(1), Brace Expansion); any other word as it is."""
    found = _BRACES.fullmatch(word)
    return [word] if found is None else [f"{found[1]}{one}{found[3]}" for one in found[2].split(",")]


def _is_odd(token: re.Match[str], before: str, is_here: bool) -> bool:
    """A descriptor by a name, what would be a comment in one line, or a word over lines before a here-document begins."""
    word = token.group()
    return bool(token["redirect"] and before == "}") or word.startswith("#") or (is_here and "\n" in word[1:])


def is_end(token: str) -> bool:
    return token in ("&&", "||", "|&", ";", "|", "&", "\n")


def begun_at(tokens: list[str]) -> list[bool]:
    """Of each token whether it is at the place of a command's name."""
    made = list[bool]()
    for at in range(len(tokens)):
        made.append(at == 0 or is_end(tokens[at - 1]) or (tokens[at - 1] in OPENS and made[at - 1]))
    return made


def command_around(tokens: Sequence[str], begun: Sequence[bool], at: int) -> tuple[Sequence[str], int]:
    """The words of the command that a token is in, from its name to its first redirect, and where the token stands in them."""
    start = next(n for n in range(at, -1, -1) if begun[n])
    end = next((n for n in range(start, len(tokens)) if is_end(tokens[n]) or re.search(r"[<>]&?\Z", tokens[n])), len(tokens))
    return tokens[start:end], at - start


def may_show(words: Sequence[str], at: int) -> bool:
    """Whether a builtin only shows, or compares, the word there, whatever it holds.

    ``test -v`` and ``printf -v`` evaluate what is in brackets, and what stands without quotes may become such an option (bash(1)).
    """
    name, behind = bare(words[0]), list(words[1:])
    if name in ("echo", "[["):
        return True
    if name == "printf":
        return at > 1 and (behind[0][:1] != "-" or behind[0] == "--")
    if name == "[":
        behind = behind[:-1]
    if behind[:1] == ["!"]:
        behind = behind[1:]
    is_compared = len(behind) == 3 and behind[1] in _COMPARES
    is_looked_at = len(behind) == 2 and re.fullmatch(r"-[a-hkn-uw-zGLNOS]", behind[0]) is not None
    return re.fullmatch(r'"[^"]*"', words[at]) is not None and (len(behind) == 1 or is_compared or is_looked_at)
