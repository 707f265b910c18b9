"""The options as a table: one row for each setting, with its group, kind, range, unit and default. Pages, verbs and documents read it."""

from __future__ import annotations

import json
import types
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from console.settings.options import Options

Kind = Literal["bool", "int", "float", "text", "choice", "list", "table"]
_KINDS: dict[Any, Kind] = {bool: "bool", int: "int", float: "float", str: "text"}
_UNITS = {"s": "s", "kib": "KiB", "mib": "MiB", "gib": "GiB", "days": "days"}
_TAKES = {"bool": "true or false", "int": "a whole number", "float": "a number", "text": "text", "list": "a list", "table": "a table"}
_OF_TYPE = ("_type", "_parsing", "dict_attributes_type", "finite_number", "_equal", "less_than", "greater_than", "literal_error")
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
            return f"{words} from {self.low:g} to {self.high:g}"
        low = "" if self.low is None else f" above {self.low:g}" if self.is_above_low else f" of at least {self.low:g}"
        high = "" if self.high is None else f"{' and' if low else ''} up to {self.high:g}"
        return words + low + high

    def problem(self, value: Any) -> str:
        """Why the setting does not take this value, as a sentence; empty: it does. Types are not converted."""
        data: Any = value
        for name in reversed(self.path):
            data = {name: data}
        try:
            Options.model_validate_json(json.dumps(data), strict=True)
        except (TypeError, ValueError) as error:
            return self._refusal(value, error)
        return ""

    def _refusal(self, value: Any, error: Exception) -> str:
        first = error.errors()[0] if isinstance(error, ValidationError) else None
        inside = first["loc"][len(self.path) :] if first is not None else ()
        if first is None or (not inside and any(kind in first["type"] for kind in _OF_TYPE)):
            said = repr(value) if isinstance(value, str) else json.dumps(value, default=str)
            return f"{self.name} takes {self.takes}, not {said[:SHOWN]}."
        place = ".".join([self.name, *(str(part)[:SHOWN] for part in inside)])
        return f"{place}: {str(first['msg']).removeprefix('Value error, ').rstrip('.')}."[:600]


def _rows(model: type[BaseModel], group: str, group_words: str) -> list[Key]:
    rows = []
    for name, field in model.model_fields.items():
        default = field.get_default(call_default_factory=True)
        if isinstance(default, BaseModel):
            rows += _rows(type(default), name, (type(default).__doc__ or "").rstrip(".").replace("``", ""))
        else:
            rows.append(_row(f"{group}.{name}" if group else name, group, group_words, field, default))
    return rows


def _row(name: str, group: str, group_words: str, field: FieldInfo, default: Any) -> Key:
    kind, choices = _kind_of(field.annotation)
    low = high = None
    is_above = False
    for mark in field.metadata:
        low = next((got for got in (getattr(mark, "ge", None), getattr(mark, "gt", None)) if got is not None), low)
        is_above = is_above or getattr(mark, "gt", None) is not None
        high = getattr(mark, "le", high)
    return Key(name, group, group_words, field.description or "", default, kind, choices, low, high, is_above)


def _kind_of(annotation: Any) -> tuple[Kind, tuple[str, ...]]:
    origin = get_origin(annotation)
    if origin is Literal:
        return "choice", get_args(annotation)
    if origin in (list, tuple):
        return "list", ()
    if origin is dict or isinstance(annotation, types.GenericAlias):
        return "table", ()
    return _KINDS[annotation], ()


KEYS: dict[str, Key] = {row.name: row for row in _rows(Options, "", "The instance")}
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
