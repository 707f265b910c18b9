"""A class made here behaves as one that the standard library makes: each test runs with both."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, asdict, astuple, field, fields, replace
from functools import partial
from typing import Any, ClassVar

import pytest

from console.domain import values


@pytest.fixture(params=[dataclasses.dataclass, values.dataclass], ids=["library", "ours"])
def make(request: pytest.FixtureRequest) -> Any:
    """What makes the class."""
    return request.param


def _point(make: Any, **options: bool) -> Any:
    class Point:
        """A place."""

        unit: ClassVar[str] = "m"
        x: int
        y: int = 2
        tags: list[str] = field(default_factory=list)
        note: str = field(default="", compare=False)
        secret: str = field(default="s", repr=False)
        weight: list[int] = field(default_factory=list, hash=False)

    return make(**({"frozen": True, "slots": True} | options))(Point)


def test_fields_are_given_by_place_or_name_and_defaults_are_made_for_each(make: Any) -> None:
    point: Any = _point(make)
    one, two = point(1), point(x=1)
    assert astuple(one) == (1, 2, [], "", "s", []) and one.tags is not two.tags
    assert point(1, 5, ["a"], weight=[1]).tags == ["a"]
    assert [one.name for one in fields(point)] == ["x", "y", "tags", "note", "secret", "weight"] and point.unit == "m"
    assert list(inspect.signature(point).parameters) == ["x", "y", "tags", "note", "secret", "weight"]
    for wrong in (point, partial(point, 1, 2, [], "", "s", [], 7), partial(point, 1, z=3)):
        with pytest.raises(TypeError):
            wrong()


def test_two_are_equal_by_the_fields_that_are_compared_and_by_their_class(make: Any) -> None:
    point = _point(make)
    assert point(1, note="a") == point(1, note="b") and point(1) != point(2)
    assert point(1) != _point(make)(1) and point(1) != (1, 2, [], "s", [])
    single, none = make(frozen=True, slots=True)(_single()), make(frozen=True, slots=True)(_empty())
    nan = float("nan")
    assert single(nan) == single(nan) and single(1) != single(2) and none() == none()
    assert hash(single(1)) == hash(single(1)) and hash(none()) == hash(none()) and len({single(1), single(1), single(2)}) == 2


def _single() -> type:
    class Single:
        """One field."""

        value: float

    return Single


def _empty() -> type:
    class Empty:
        """None."""

    return Empty


def test_a_hash_is_made_of_what_counts_and_only_of_what_cannot_change(make: Any) -> None:
    class Named:
        """One field counts."""

        name: str
        data: dict[str, int] = field(hash=False)

    frozen = make(frozen=True, slots=True)(Named)
    assert hash(frozen("a", {})) == hash(frozen("a", {"b": 1}))
    with pytest.raises(TypeError, match="unhashable"):
        hash(_point(make)(1))  # it holds a list
    with pytest.raises(TypeError, match="unhashable"):
        hash(make(slots=True)(_single())(1.0))
    by_itself = make(frozen=True, slots=True, eq=False)(_single())
    assert by_itself(1.0) != by_itself(1.0) and len({by_itself(1.0), by_itself(1.0)}) == 2


def test_it_is_shown_with_its_fields_also_when_it_holds_itself(make: Any) -> None:
    assert repr(_point(make)(1)).endswith("Point(x=1, y=2, tags=[], note='', weight=[])")
    assert repr(make(frozen=True)(_empty())()).endswith("Empty()")
    holder = make(slots=True)(_single())
    one = holder(0)
    one.value = [one]
    assert repr(one).endswith("Single(value=[...])")


def test_what_is_frozen_stays_and_what_is_slotted_takes_no_other_name(make: Any) -> None:
    one = _point(make)(1)
    for act in (partial(setattr, one, "x", 2), partial(delattr, one, "x")):
        with pytest.raises(FrozenInstanceError, match="field 'x'"):
            act()
    assert one.x == 1 and not hasattr(one, "__dict__")
    loose = _point(make, frozen=False)(1)
    loose.x = 7
    with pytest.raises(AttributeError):
        loose.z = 1
    assert loose.x == 7
    assert vars(_point(make, frozen=False, slots=False)(1))["x"] == 1


def test_it_is_copied_and_replaced_as_a_value(make: Any) -> None:
    one: Any = _point(make)(1, tags=["a"])
    deep, shallow = copy.deepcopy(one), copy.copy(one)
    assert deep == one == shallow and deep.tags is not one.tags and shallow.tags is one.tags
    assert replace(one, x=4) == _point_of(one, 4) and asdict(one)["tags"] == ["a"]
    assert type(one).__match_args__ == ("x", "y", "tags", "note", "secret", "weight")


def _point_of(one: Any, x: int) -> Any:
    return type(one)(x, one.y, one.tags, one.note, one.secret, one.weight)


def test_fields_that_are_worked_out_are_set_behind_the_others(make: Any) -> None:
    class Sized:
        """Counts."""

        text: str
        size: int = field(init=False)
        seen: list[str] = field(init=False, default_factory=list)
        state: str = field(init=False, default="new")

        def __post_init__(self) -> None:
            object.__setattr__(self, "size", len(self.text))

    one = make(frozen=True)(Sized)("four")
    assert (one.size, one.seen, one.state) == (4, [], "new")
    with pytest.raises(TypeError):
        make(frozen=True)(Sized)("four", 3)


def test_one_that_extends_another_has_its_fields_first_and_keywords_stay_keywords(make: Any) -> None:
    base = _point(make)
    below = make(frozen=True, slots=True, kw_only=True)(type("Below", (base,), {"__annotations__": {"z": "int"}, "__doc__": "More."}))
    assert [one.name for one in fields(below)][-1] == "z" and below(1, z=3) == below(x=1, z=3) != below(1, z=4)
    assert below(1, z=3) != base(1)
    with pytest.raises(TypeError):
        below(1)
    with pytest.raises(TypeError):
        below(1, 2, [], "", "s", [], 3)


def test_methods_of_the_class_are_kept(make: Any) -> None:
    class Own:
        """Says everything itself."""

        x: int

        def __init__(self) -> None:
            object.__setattr__(self, "x", 9)

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 5

    one = make(frozen=True)(Own)()
    assert (one.x, repr(one), one == 3, hash(one)) == (9, "own", True, 5)


@values.dataclass(frozen=True, slots=True)
class Kept:
    """Has a name by which it is found again."""

    x: int
    below: Kept | None = None


def test_it_goes_to_another_process_and_back() -> None:
    one = Kept(1, Kept(2))
    assert pickle.loads(pickle.dumps(one)) == one


def test_a_mutable_default_is_refused(make: Any) -> None:
    class Shared:
        """All would have one list."""

        x: list[int] = []  # noqa: RUF012

    with pytest.raises(ValueError, match="mutable default"):
        make(frozen=True)(Shared)


MANY = """import time
from dataclasses import dataclass as library
from console.domain.values import dataclass as ours
def took(make):
    kinds = [type(f"Kind{n}", (), {"__doc__": "x", "__annotations__": {name: "int" for name in "abcdef"}}) for n in range(40)]
    began = time.process_time()
    for kind in kinds:
        make(frozen=True, slots=True)(kind)
    return time.process_time() - began
print(min(took(library) for _ in range(3)) / min(took(ours) for _ in range(3)))"""


def test_a_class_takes_less_than_half_of_the_time_to_make() -> None:
    """The library of later Pythons compiles all methods of a class at once, and comes nearer."""
    times = float(subprocess.run([sys.executable, "-c", MANY], capture_output=True, check=True, text=True).stdout)
    assert times > (2 if sys.version_info < (3, 13) else 1)
