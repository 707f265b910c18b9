"""What a verb takes, read from its function's annotations; the words that a person typed, read by that; and refusals that help.

Standard library only, and little of it: an argument parser that loads for as long as Python itself would be most of a start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from console.cli.terminal.plain import plain
from console.domain.errors import UsageProblem

Function = Callable[..., int]
HELP_NAMES = ("-h", "--help")
_SHOWN = 80
"""Letters of what was typed that a refusal repeats."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What an annotation says of a parameter."""

    names: tuple[str, ...] = ()
    """``--reason``, ``-n``; empty: derived from the parameter's name."""
    metavar: str = ""
    help: str = ""
    min: float | None = None
    max: float | None = None
    is_argument: bool = False
    show_default: bool = True


def Option(*names: str, **said: Any) -> Mark:  # noqa: N802 - stands in an annotation like a type
    """Marks a parameter that is given by name. Fields: those of `Mark`."""
    return Mark(names, **said)


def Argument(**said: Any) -> Mark:  # noqa: N802
    """Marks a parameter that is given by its place. Fields: those of `Mark`."""
    return Mark(is_argument=True, **said)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a verb."""

    key: str
    """Of the function."""
    names: tuple[str, ...]
    mark: Mark
    kind: type
    """bool (a flag), str, int, float or Path."""
    many: bool
    required: bool
    default: Any

    @property
    def label(self) -> str:
        """What a refusal calls it."""
        return self.mark.metavar if self.mark.is_argument else self.names[-1]


class Typed(dict[str, str]):
    """What was typed: the name of each parameter that the command line names, with the word it was named by. Annotates a parameter."""


class Rest(list[str]):
    """The words that the verb itself does not take, in order. Annotates a parameter of a verb that hands them on."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How a person wants a list: ``--columns``, ``--sort``, ``--no-headers``. Annotates a parameter; each list takes the same three."""

    columns: str = ""
    sort: str = ""
    no_headers: bool = False

    def __bool__(self) -> bool:
        return self != UNSHAPED


UNSHAPED = Shape()
"""As the verb itself lays it out."""
_SHAPING = (
    Mark(("--columns",), "NAMES", "Only these columns, in this order: name,cost."),
    Mark(("--sort",), "NAME", "Order by this column; -NAME: the largest first."),
    Mark(("--no-headers",), help="Rows without heads."),
)


_EXAMPLES: dict[Function, str] = {}


def example(words: str) -> Callable[[Function], Function]:
    """Says what a person types behind the verb, as an example for its ``--help``. A test reads each by the rules of its verb."""

    def add(function: Function) -> Function:
        _EXAMPLES[function] = words
        return function

    return add


@dataclass(frozen=True, slots=True)
class Verb:
    """A function that the command line runs; its docstring is its help, its answer the exit code."""

    function: Function
    words_last: bool = False
    """Whether the first word that is no option ends the options, as for the command of ``run``."""

    @property
    def help(self) -> str:
        return self.function.__doc__ or ""

    @property
    def example(self) -> str:
        """What is typed behind it, or nothing."""
        return _EXAMPLES.get(self.function, "")

    def parameters(self) -> list[Parameter]:
        """Those that people give, in order; the special ones are left out."""
        found = list[Parameter]()
        for key, hint in _hints(self.function).items():
            if hint is Shape:
                found += [
                    Parameter(one.names[0], one.names, one, kind, False, False, kind())
                    for one, kind in zip(_SHAPING, (str, str, bool), strict=True)
                ]
            elif (one := _parameter(self.function, key, hint)) is not None:
                found.append(one)
        return found

    def read(self, path: str, words: list[str]) -> dict[str, Any] | None:
        """What the words give to the function; None where help is asked for.

        Raises UsageProblem that names ``path`` (``watchfloor kill``).
        """
        special = {key: hint for key, hint in _hints(self.function).items() if hint in (Typed, Rest, Shape)}
        reading = _Reading(path, self, hands_on=Rest in special.values())
        if reading.read(words):
            return None
        values = reading.values()
        for key, hint in special.items():
            if hint is Shape:
                values[key] = Shape(*(values.pop(one.names[0]) for one in _SHAPING))
            else:
                values[key] = reading.typed if hint is Typed else Rest(reading.rest)
        return values


@dataclass(frozen=True, slots=True)
class Verbs:
    """Verbs, or further nouns, below a noun: ``watchfloor budget set``, ``watchfloor secrets keys show``."""

    help: str
    verbs: dict[str, Verb | Verbs] = field(default_factory=dict)
    shows: str = ""
    """The verb whose example is shown for all of them; empty: the first one."""

    @property
    def example(self) -> str:
        """As of a verb."""
        name = self.shows or next(iter(self.verbs))
        return f"{name} {self.verbs[name].example}".strip()

    def command(self, name: str) -> Callable[[Function], Function]:
        """Adds the function as a verb of this name."""

        def add(function: Function) -> Function:
            self.verbs[name] = Verb(function)
            return function

        return add


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`` Did you mean X?`` with the nearest of the known words; empty when none is near."""
    from difflib import get_close_matches

    # One wrong letter of a short word is much of it; of a long one, half a word in common is chance ("restart" is no "rearm").
    near = get_close_matches(word, list(known), n=1, cutoff=0.6 if len(word) < 5 else 0.7)
    return f" Did you mean {near[0]}?" if near else ""


def _hints(function: Function) -> dict[str, Any]:
    hints = get_type_hints(function, include_extras=True)
    hints.pop("return", None)
    return hints


def _parameter(function: Function, key: str, hint: Any) -> Parameter | None:
    if hint in (Typed, Rest):
        return None
    kind, mark = get_args(hint)[:2] if get_origin(hint) is Annotated else (hint, Mark())
    several = [one for one in get_args(kind) if one is not NoneType]
    if get_origin(kind) is list:
        kind, many = several[0], True
    elif several:  # X | None
        many = get_origin(several[0]) is list
        kind = get_args(several[0])[0] if many else several[0]
    else:
        many = False
    names = tuple(sorted(mark.names, key=lambda name: len(name) > 2)) or (f"--{key.replace('_', '-')}",)
    defaults = _defaults(function)
    return Parameter(key, () if mark.is_argument else names, mark, kind, many, key not in defaults, defaults.get(key))


def _defaults(function: Function) -> dict[str, Any]:
    code = function.__code__
    plain_names = code.co_varnames[: code.co_argcount]
    values = function.__defaults__ or ()
    return dict(zip(plain_names[len(plain_names) - len(values) :], values, strict=True)) | dict(function.__kwdefaults__ or {})


class _Reading:
    """One command line, word by word."""

    def __init__(self, path: str, verb: Verb, *, hands_on: bool) -> None:
        self.path = path
        self.rest: list[str] = []
        self.typed = Typed()
        self._verb, self._hands_on = verb, hands_on
        self._parameters = verb.parameters()
        self._options = {name: one for one in self._parameters for name in one.names}
        # A verb that hands words on has no arguments of its own: a value must stay behind its option.
        self._places: list[str] = self.rest if hands_on else []
        self._found: dict[str, list[str]] = {}

    def read(self, words: list[str]) -> bool:
        """Sorts the words into options, places and the rest; whether help is asked for. Raises UsageProblem."""
        left = list(words)
        while left:
            word = left.pop(0)
            if word == "--":
                self._places += left
                break
            if len(word) < 2 or word[0] != "-":
                self._places.append(word)
                if self._verb.words_last:
                    self._places += left
                    break
            elif word in HELP_NAMES:
                return True
            elif word.startswith("--"):
                self._long(word, left)
            else:
                self._short(word, left)
        self._lay_out()
        return False

    def values(self) -> dict[str, Any]:
        """Of each parameter. Raises UsageProblem for one that is missing or cannot be read."""
        return {one.key: self._value(one) for one in self._parameters}

    def _long(self, word: str, left: list[str]) -> None:
        name, sign, value = word.partition("=")
        option = self._options.get(name)
        if option is None:
            self._unknown(name, word)
        elif option.kind is bool:
            if sign:
                raise self._wrong(f"{name} takes no value.")
            self._take(option, name, "")
        else:
            self._take(option, name, value if sign else self._next(name, left))

    def _short(self, word: str, left: list[str]) -> None:
        """``-f``, ``-n 3``, ``-n3`` and ``-fn3``."""
        for place, letter in enumerate(word[1:], 2):
            name = f"-{letter}"
            option = self._options.get(name)
            if option is None:
                self._unknown(name if len(word) == 2 else word, word)
                return
            if option.kind is not bool:
                self._take(option, name, word[place:] or self._next(name, left))
                return
            self._take(option, name, "")

    def _next(self, name: str, left: list[str]) -> str:
        if not left:
            raise self._wrong(f"{name} needs a value.")
        return left.pop(0)

    def _take(self, option: Parameter, name: str, value: str) -> None:
        self._found.setdefault(option.key, []).append(value)
        self.typed[option.key] = name

    def _unknown(self, name: str, word: str) -> None:
        if not self._hands_on:
            from console.wording.typed_verbs import MEANT

            meant = MEANT.get(f"{self.path.partition(' ')[2]} {name}")
            near = f" Did you mean {meant}?" if meant else did_you_mean(name, [*self._options, "--help"])
            raise self._wrong(f"{self.path} has no option {plain(name, _SHOWN)}.{near}")
        self.rest.append(word)

    def _lay_out(self) -> None:
        """Gives the words in places to the arguments; the last one may take several."""
        for one in (one for one in self._parameters if one.mark.is_argument):
            count = len(self._places) if one.many else 1
            taken, self._places = self._places[:count], self._places[count:]
            if taken:
                self._found[one.key], self.typed[one.key] = taken, one.label
        if self._places and not self._hands_on:
            raise self._wrong(f"{self.path} takes no further word: {plain(self._places[0], _SHOWN)!r}.")

    def _value(self, one: Parameter) -> Any:
        found = self._found.get(one.key, [])
        if not found:
            if one.required:
                raise self._wrong(f"{one.label} is missing.")
            return one.default
        if one.kind is bool:
            return True
        read = [self._read(one, word) for word in found]
        return read if one.many else read[-1]

    def _read(self, one: Parameter, word: str) -> Any:
        if one.kind not in (int, float):
            return one.kind(word)
        try:
            number = one.kind(word)
        except ValueError:
            wanted = "a whole number" if one.kind is int else "a number"
            raise self._wrong(f"{one.label} takes {wanted}, not {plain(word, _SHOWN)!r}.") from None
        low, high = one.mark.min, one.mark.max
        if number != number or (low is not None and number < low) or (high is not None and number > high):
            raise self._wrong(f"{one.label} takes {range_words(one.mark)}, not {plain(word, _SHOWN)}.")
        return number

    def _wrong(self, words: str) -> UsageProblem:
        return UsageProblem(words, f"{self.path} --help shows what it takes.")


def range_words(mark: Mark) -> str:
    """``1 to 500``, ``0 or more``, ``500 or less``."""
    if mark.min is None:
        return f"{mark.max} or less" if mark.max is not None else "a number"
    return f"{mark.min} to {mark.max}" if mark.max is not None else f"{mark.min} or more"
