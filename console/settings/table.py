"""The options as a table: one row for each setting, with its group, kind, range, unit and default. Pages, verbs and documents read it."""

from __future__ import annotations

import json
import types
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta
from msgspec.structs import FieldInfo

from console.domain.message import Malformed, Message
from console.settings.options import Options

Kind = Literal["bool", "int", "float", "text", "choice", "list", "table"]
_KINDS: dict[Any, Kind] = {bool: "bool", int: "int", float: "float", str: "text"}
_UNITS = {"s": "s", "kib": "KiB", "mib": "MiB", "gib": "GiB", "days": "days"}
_TAKES = {"bool": "true or false", "int": "a whole number", "float": "a number", "text": "text", "list": "a list", "table": "a table"}
_INPUT = "Input should be "
"""How a refusal of a wrong type, choice or bound begins."""
SHOWN = 80
"""Characters of a refused value that a sentence repeats."""


@dataclass(frozen=True, slots=True)
class Key:
    """One setting."""

    name: str
    """With its section: ``panic.include_observed``."""
    group: str
    """The section's name; empty: none."""
    group_words: str
    words: str
    default: Any
    kind: Kind
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    is_above_low: bool = False
    """The value is above ``low``, not equal to it."""

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(self.name.split("."))

    @property
    def unit(self) -> str:
        """What a number counts, by the end of its name; empty: pieces."""
        return _UNITS.get(self.name.rpartition("_")[2], "") if self.kind in ("int", "float") else ""

    @property
    def is_scalar(self) -> bool:
        """Whether a single word holds its value."""
        return self.kind not in ("list", "table")

    @property
    def takes(self) -> str:
        """``a whole number from 1 to 20``, ``true or false``, ``one of stop, alarm``."""
        if self.kind == "choice":
            return f"one of {', '.join(choice or 'nothing' for choice in self.choices)}"
        words = _TAKES[self.kind]
        if self.low is not None and self.high is not None and not self.is_above_low:
            return f"{words} from {self.low:,} to {self.high:,}"
        low = "" if self.low is None else f" above {self.low:,}" if self.is_above_low else f" of at least {self.low:,}"
        high = "" if self.high is None else f"{' and' if low else ''} up to {self.high:,}"
        return words + low + high

    def problem(self, value: Any) -> str:
        """Why the setting does not take this value, as a sentence; empty: it does. Types are not converted."""
        data: Any = value
        for name in reversed(self.path):
            data = {name: data}
        try:
            Options.read_json(json.dumps(data))
        except Malformed as error:
            return self._refusal(value, error.parts[len(self.path) :], error.words)
        except (TypeError, ValueError):
            return self._refusal(value)
        return ""

    def _refusal(self, value: Any, inside: tuple[str, ...] = (), words: str = _INPUT) -> str:
        if not inside and words.startswith((_INPUT, "Invalid JSON")):
            said = repr(value) if isinstance(value, str) else json.dumps(value, default=str)
            return f"{self.name} takes {self.takes}, not {said[:SHOWN]}."
        place = ".".join([self.name, *(part[:SHOWN] for part in inside)])
        return f"{place}: {words.rstrip('.')}."[:600]


def rows_of(model: type[Message], group: str = "", group_words: str = "") -> list[Key]:
    """A row for each option of a section, and of the sections in it."""
    rows = []
    for field in msgspec.structs.fields(model):
        if isinstance(field.type, type) and issubclass(field.type, Message):
            rows += rows_of(field.type, field.name, (field.type.__doc__ or "").rstrip(".").replace("``", ""))
        else:
            rows.append(_row(f"{group}.{field.name}" if group else field.name, group, group_words, field))
    return rows


def _row(name: str, group: str, group_words: str, field: FieldInfo) -> Key:
    annotation, meta = get_args(field.type) if get_origin(field.type) is Annotated else (field.type, Meta())
    default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    kind, choices = _kind_of(annotation)
    low = meta.ge if meta.gt is None else meta.gt
    return Key(name, group, group_words, meta.description or "", default, kind, choices, low, meta.le, meta.gt is not None)


def _kind_of(annotation: Any) -> tuple[Kind, tuple[str, ...]]:
    origin = get_origin(annotation)
    if origin is Literal:
        return "choice", get_args(annotation)
    if origin in (list, tuple):
        return "list", ()
    if origin is dict or isinstance(annotation, types.GenericAlias):
        return "table", ()
    return _KINDS[annotation], ()


KEYS: dict[str, Key] = {row.name: row for row in rows_of(Options, "", "The instance")}
"""Every setting by its name, in the order of the options."""
SECTIONS = {row.group for row in KEYS.values() if row.group}


def nested(values: dict[str, Any]) -> dict[str, Any]:
    """``{"panic.include_observed": x}`` as ``{"panic": {"include_observed": x}}``."""
    data: dict[str, Any] = {}
    for name, value in values.items():
        section, _, last = name.rpartition(".")
        (data.setdefault(section, {}) if section else data)[last] = value
    return data


def flat(data: dict[str, Any]) -> dict[str, Any]:
    """The reverse: names with their section. What is no section stays whole; unknown names stay as they are."""
    found: dict[str, Any] = {}
    for name, value in data.items():
        if name in SECTIONS and isinstance(value, dict):
            found |= {f"{name}.{inner}": inner_value for inner, inner_value in value.items()}
        else:
            found[json.dumps(name) if "." in name else name] = value  # a quoted name with a dot is no section
    return found
