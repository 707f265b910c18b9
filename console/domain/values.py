"""``dataclass`` as the standard library has it, for a quarter of the time that a class takes there to make.

``dataclasses.dataclass`` writes up to seven methods of each class as text and compiles them: with 500 classes, more than half of what a
start takes. Here only ``__init__`` is compiled. The other methods are ordinary functions, which read the fields that a class names.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same to whoever checks types, so that fields, order and freezing are checked as ever
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, kw_only=False):
        """As ``dataclasses.dataclass``; a frozen class says no to every name, not to its fields alone. ``InitVar`` is not there."""
        return (lambda one: _made(one, frozen, slots, eq, kw_only)) if cls is None else _made(cls, frozen, slots, eq, kw_only)


def _made(cls: type, frozen: bool, slots: bool, eq: bool, kw_only: bool) -> type:
    # The library collects the fields, inherited ones too, and makes room for them; it writes no method.
    made: type = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
    fields = dataclasses.fields(made)
    own = cls.__dict__
    methods: dict[str, Any] = {"__init__": _init(made, fields, frozen), "__repr__": _repr}
    if eq:
        compared = _reader([one.name for one in fields if one.compare])
        methods["__eq__"] = _equal(compared)
        if own.get("__hash__") is None:  # also None where a class has an __eq__ of its own
            methods["__hash__"] = _hash(_reader([o.name for o in fields if (o.compare if o.hash is None else o.hash)])) if frozen else None
    if frozen:
        methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
        if slots:
            methods |= {"__getstate__": _state, "__setstate__": _set_state}
    for name, method in methods.items():
        if name == "__hash__" or name not in own:
            setattr(made, name, method)
    return made


def _init(cls: type, fields: tuple[Field[Any], ...], frozen: bool) -> Callable[..., None]:
    """The one method whose text differs from class to class."""
    names: dict[str, Any] = {"_missing": MISSING, "_set": object.__setattr__}
    given, keywords, lines = ["self"], list[str](), list[str]()
    for one in fields:
        name, value = one.name, one.name
        if one.default_factory is not MISSING:
            names[f"_new_{name}"] = one.default_factory
            value = f"_new_{name}() if {name} is _missing else {name}" if one.init else f"_new_{name}()"
        elif one.default is not MISSING:
            names[f"_default_{name}"] = one.default
            value = name if one.init else f"_default_{name}"
        elif not one.init:
            continue
        if one.init:
            default = "_missing" if one.default_factory is not MISSING else f"_default_{name}"
            has_default = one.default is not MISSING or one.default_factory is not MISSING
            (keywords if one.kw_only else given).append(f"{name}={default}" if has_default else name)
        lines.append(f"  _set(self, {name!r}, {value})" if frozen else f"  self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("  self.__post_init__()")
    parameters = ", ".join(given + (["*", *keywords] if keywords else []))
    text = "\n".join([f"def __init__({parameters}):", *(lines or ["  pass"])])
    exec(compile(text, f"<fields of {cls.__qualname__}>", "exec"), names)
    init: Callable[..., None] = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {one.name: one.type for one in fields if one.init} | {"return": None}
    return init


def _reader(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What reads these fields of an instance, as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return (lambda instance: (getattr(instance, names[0]),)) if names else (lambda instance: ())


def _equal(compared: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], Any]:
    def equal(self: Any, other: object) -> Any:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _hash(hashed: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    def value(self: Any) -> int:
        return hash(hashed(self))

    return value


@recursive_repr()
def _repr(self: Any) -> str:
    shown = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in dataclasses.fields(self) if one.repr)
    return f"{self.__class__.__qualname__}({shown})"


def _refuse_to_set(_self: object, name: str, _value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    """For copy and pickle: a frozen instance with slots has no dict, and cannot be assigned to."""
    return [getattr(self, one.name) for one in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for one, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)
