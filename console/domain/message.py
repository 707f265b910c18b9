"""Records that are checked where they are read, from JSON or a table. A refusal names the field and says what is wrong with it."""

from __future__ import annotations

import ast
import json
import re
import threading
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin

import msgspec

_END = r"\Z"
_LONE = re.compile("[\ud800-\udfff]")
_KIND = re.compile(r"Expected `(\w+)")
_LENGTH = re.compile(r"Expected `(str|array|object)` of length (<=|>=) (\d+)")
_BOUND = re.compile(r"Expected `(?:int|float)` (<=|>=|<|>) (\S+)")
_PATTERN = re.compile(r"Expected `str` matching regex (.*?)(?: - at |$)", re.DOTALL)
_COUNTED = {"str": ("String", "character"), "array": ("List", "item"), "object": ("Dictionary", "item")}
_COMPARED = {"<=": "less than or equal to", ">=": "greater than or equal to", "<": "less than", ">": "greater than"}
_NAMED = {
    "str": "a valid string", "int": "a valid integer", "float": "a valid number", "bool": "a valid boolean",
    "array": "a valid array", "object": "an object",
}  # fmt: skip


_FRACTIONS = {
    f"{before}float{after}"
    for before, end in (("", ""), ("list[", "]"), ("dict[str, ", "]"))
    for after in (end, f" | None{end}", f"{end} | None")
}


class Malformed(ValueError):
    """Something is no such message. ``where`` names the field, ``words`` say what is wrong with it."""

    def __init__(self, where: tuple[str, ...], words: str) -> None:
        super().__init__(f"{'.'.join(where)}: {words}" if where else words)
        self.parts, self.words = where, words

    @property
    def where(self) -> str:
        """The field's place with dots; empty: the whole."""
        return ".".join(self.parts)


class Message(msgspec.Struct, kw_only=True):
    """A message. Its fields are checked where it is read; one of typed words is made by ``made``."""

    def __post_init__(self) -> None:
        """Make whole numbers in fields of fractions fractions, so that JSON shows them alike."""
        for name in _fractions(type(self)):
            value = getattr(self, name)
            if type(value) is int:
                setattr(self, name, float(value))
            elif type(value) is dict and int in map(type, value.values()):
                setattr(self, name, {key: float(one) if type(one) is int else one for key, one in value.items()})
            elif type(value) is list and int in map(type, value):
                setattr(self, name, [float(one) if type(one) is int else one for one in value])

    @classmethod
    def read(cls, data: Any) -> Self:
        """A message of what JSON holds. Raises Malformed."""
        prepare(cls)
        try:
            return msgspec.convert(data, cls)
        except msgspec.ValidationError as error:
            raise problem(cls, data) from error

    @classmethod
    def made(cls, **fields: Any) -> Self:
        """A message of these fields, checked. Raises Malformed."""
        return cls.read(fields)

    @classmethod
    def read_json(cls, raw: bytes | str) -> Self:
        """A message of JSON. Raises Malformed."""
        prepare(cls)
        try:
            return msgspec.json.decode(raw, type=cls)
        except msgspec.ValidationError as error:
            raise problem(cls, parsed(raw)) from error
        except (ValueError, RecursionError) as error:
            raise _no_json(error) from error

    def to_json(self) -> str:
        """The message as JSON. Raises ValueError for text that is not valid Unicode."""
        return msgspec.json.encode(self).decode()

    def as_data(self, *, exclude: Collection[str] = ()) -> dict[str, Any]:
        """The fields, with what they hold, as JSON knows it."""
        return {name: value for name, value in msgspec.to_builtins(self).items() if name not in exclude}

    def replaced(self, **fields: Any) -> Self:
        """The same message with other values in some fields."""
        return msgspec.structs.replace(self, **fields)

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """The names of its fields."""
        return cls.__struct_fields__


_PREPARED = set[Any]()
_PREPARING = threading.Lock()


def prepare(kind: Any) -> None:
    """To be called before anything is read as ``kind``: the library works out a type at its first use.

    A second thread that came upon a type half worked out crashed the process (msgspec 0.22).
    """
    if kind not in _PREPARED:
        with _PREPARING:
            msgspec.json.Decoder(kind)
        _PREPARED.add(kind)


@cache
def _fractions(kind: type[Message]) -> tuple[str, ...]:
    hints = {name: words for base in kind.__mro__ for name, words in vars(base).get("__annotations__", {}).items()}
    return tuple(name for name, words in hints.items() if words in _FRACTIONS)


def parsed(raw: bytes | str) -> Any:
    """What JSON holds. Raises Malformed."""
    try:
        return msgspec.json.decode(raw)
    except (ValueError, RecursionError) as error:
        raise _no_json(error) from error


def as_json(data: Any) -> str:
    """JSON of plain data, in ASCII. A lone surrogate, as in a name that is no valid text, stands as its code in letters.

    JSON could hold it, but those who take only valid text could read nothing of the whole.
    """
    text = json.dumps(data)
    if r"\ud" in text and _LONE.search(whole := json.dumps(data, ensure_ascii=False)):
        text = json.dumps(json.loads(_LONE.sub(lambda one: rf"\\u{ord(one[0]):04x}", whole)))
    return text


def _no_json(error: Exception) -> Malformed:
    if isinstance(error, RecursionError):
        return Malformed((), "Invalid JSON: it is nested too deeply")
    if isinstance(error, UnicodeError):
        return Malformed((), "Invalid JSON: it is not valid UTF-8")
    said = str(error).removeprefix("JSON is malformed: ").partition(" - at ")[0]  # its place shows no names
    return Malformed((), f"Invalid JSON: {said}")


def problem(kind: type[Message], data: Any, where: tuple[str, ...] = ()) -> Malformed:
    """The first problem of what is no such message, in the order of its fields; the library's own order is that of the input."""
    if not isinstance(data, dict):
        return Malformed(where, "Input should be an object")
    fields = msgspec.structs.fields(kind)
    for field in fields:
        if field.encode_name not in data:
            if field.required:
                return Malformed((*where, field.encode_name), "Field required")
        elif found := _inside(field.type, data[field.encode_name], (*where, field.encode_name)):
            return found
    known = {kind.__struct_config__.tag_field, *(field.encode_name for field in fields)}
    unknown = [str(name)[:60] for name in data if name not in known]
    return Malformed((*where, *unknown[:1]), "Extra inputs are not permitted") if unknown else _of_the_whole(kind, data, where)


def _of_the_whole(kind: type[Message], data: Any, where: tuple[str, ...]) -> Malformed:
    """What a message finds wrong with itself when each of its fields is right."""
    try:
        msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        if isinstance(said := error.__cause__, Malformed):
            return Malformed((*where, *said.parts), said.words)
    return Malformed(where, "Input is not valid")


def _inside(kind: Any, value: Any, where: tuple[str, ...]) -> Malformed | None:
    """The first problem of a value in a field; None: there is none."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        said = str(error)
    else:
        return None
    bare = _bare(kind)
    inside, choices = get_origin(bare), get_args(bare)
    found: Iterator[Malformed | None] = iter(())
    if isinstance(bare, type) and issubclass(bare, Message):
        return problem(bare, value, where)
    if inside is Literal:
        return Malformed(where, _one_of(choices))
    if inside in (Union, UnionType) and isinstance(value, dict):
        return _of_union(choices, value, where)
    if inside in (list, tuple) and isinstance(value, list | tuple):
        found = (_inside(choices[0], one, (*where, str(at))) for at, one in enumerate(value))
    elif inside is dict and isinstance(value, dict):
        found = (_inside(choices[1], one, (*where, str(name)[:60])) for name, one in value.items())
    return next((one for one in found if one), None) or Malformed(where, _in_words(said, value))


def _one_of(choices: Sequence[Any]) -> str:
    *most, last = (repr(one) for one in choices)
    return f"Input should be {', '.join(most)} or {last}" if most else f"Input should be {last}"


def _of_union(choices: Sequence[Any], value: dict[str, Any], where: tuple[str, ...]) -> Malformed:
    """The problem of what is none of several kinds of message, told by the field that names the kind."""
    kinds = {one.__struct_config__.tag: one for one in choices if isinstance(one, type) and issubclass(one, Message)}
    field = next((one.__struct_config__.tag_field for one in kinds.values()), None)
    if field is None:
        return Malformed(where, "Input is not valid")
    if field not in value:
        return Malformed((*where, field), "Field required")
    tag = value[field]
    return problem(kinds[tag], value, where) if isinstance(tag, str) and tag in kinds else Malformed((*where, field), _one_of([*kinds]))


def _bare(kind: Any) -> Any:
    """A field's type without bounds, and without its None."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, UnionType):
        others = [one for one in get_args(kind) if one is not NoneType]
        return _bare(others[0]) if len(others) == 1 else kind
    return kind


def _in_words(said: str, value: Any) -> str:
    """What the library says, in the words of a person."""
    if found := _LENGTH.match(said):
        what, of = _COUNTED[found[1]]
        bound = int(found[3])
        many = "" if of == "character" else f" after validation, not {len(value)}"
        return f"{what} should have at {'least' if found[2] == '>=' else 'most'} {bound} {of}{'' if bound == 1 else 's'}{many}"
    if found := _BOUND.match(said):
        return f"Input should be {_COMPARED[found[1]]} {found[2].removesuffix('.0')}"
    if found := _PATTERN.match(said):
        return f"String should match pattern '{ast.literal_eval(found[1]).replace(_END, '$')}'"  # the library shows its repr
    if found := _KIND.match(said):
        return f"Input should be {_NAMED.get(found[1], found[1])}"
    return said.partition(" - at ")[0]
