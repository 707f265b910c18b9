"""Messages refuse what they do not describe, name the field, and say the same whoever made them."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, field

from console.api.message import Id, Reason, Request, View
from console.domain.message import Malformed


class Inner(Request, kw_only=True):
    reach: Literal["agent", "all"]
    target: str = ""


class Body(Request, kw_only=True):
    action: Literal["freeze", "kill", "thaw"]
    reason: Reason
    scope: Inner
    id: Id | None = None
    many: Annotated[list[Annotated[str, Meta(max_length=3)]], Meta(max_length=2)] = []
    limits: Annotated[dict[str, float], Meta(max_length=2)] = {}
    seconds: Annotated[float, Meta(gt=0, le=60)] | None = None
    count: Annotated[int, Meta(ge=0, le=9)] = 0
    yes: bool = False
    rest: Any = None


class Shown(View, kw_only=True):
    cost: float = 0.0
    left: float | None = None
    rows: list[str] = []


class Many(View, kw_only=True):
    by_name: dict[str, float] = {}
    each: list[float | None] = []
    whole: dict[str, int] = {}


GOOD: dict[str, Any] = {"action": "kill", "reason": "r", "scope": {"reach": "all"}}
LONG = "x" * 501


@pytest.mark.parametrize(
    ("change", "where", "words"),
    [
        ({"nosuch": 1}, "nosuch", "Extra inputs are not permitted"),
        ({"nosuch": 1, "action": None}, "action", "Input should be 'freeze', 'kill' or 'thaw'"),
        ({"action": "Kill"}, "action", "Input should be 'freeze', 'kill' or 'thaw'"),
        ({"reason": ""}, "reason", "String should have at least 1 character"),
        ({"reason": LONG}, "reason", "String should have at most 500 characters"),
        ({"reason": 7}, "reason", "Input should be a valid string"),
        ({"reason": ["r"]}, "reason", "Input should be a valid string"),
        ({"scope": "all"}, "scope", "Input should be an object"),
        ({"scope": {}}, "scope.reach", "Field required"),
        ({"scope": {"reach": "all", "more": 1}}, "scope.more", "Extra inputs are not permitted"),
        ({"scope": {"reach": "all", "target": 1}}, "scope.target", "Input should be a valid string"),
        ({"id": "../etc"}, "id", "String should match pattern '^[a-z0-9][a-z0-9-]{0,62}$'"),
        ({"id": "abc\n"}, "id", "String should match pattern '^[a-z0-9][a-z0-9-]{0,62}$'"),
        ({"many": "abc"}, "many", "Input should be a valid array"),
        ({"many": ["a", "b", "c"]}, "many", "List should have at most 2 items after validation, not 3"),
        ({"many": ["a", 1]}, "many.1", "Input should be a valid string"),
        ({"many": ["a", "long"]}, "many.1", "String should have at most 3 characters"),
        ({"limits": {"cost": "2"}}, "limits.cost", "Input should be a valid number"),
        ({"limits": {"cost": True}}, "limits.cost", "Input should be a valid number"),
        ({"limits": {"a": 1, "b": 1, "c": 1}}, "limits", "Dictionary should have at most 2 items after validation, not 3"),
        ({"seconds": 0}, "seconds", "Input should be greater than 0"),
        ({"seconds": 61}, "seconds", "Input should be less than or equal to 60"),
        ({"count": -1}, "count", "Input should be greater than or equal to 0"),
        ({"count": 10**40}, "count", "Input should be less than or equal to 9"),
        ({"count": True}, "count", "Input should be a valid integer"),
        ({"count": 1.0}, "count", "Input should be a valid integer"),
        ({"count": "1"}, "count", "Input should be a valid integer"),
        ({"yes": 1}, "yes", "Input should be a valid boolean"),
        ({"yes": "true"}, "yes", "Input should be a valid boolean"),
    ],
)
def test_what_is_no_such_message_is_refused_by_the_field(change: dict[str, Any], where: str, words: str) -> None:
    with pytest.raises(Malformed) as in_json:
        Body.read_json(json.dumps(GOOD | change))
    with pytest.raises(Malformed) as in_words:
        Body.made(**GOOD | change)
    assert [(one.value.where, one.value.words) for one in (in_json, in_words)] == [(where, words)] * 2


@pytest.mark.parametrize("missing", ["action", "reason", "scope"])
def test_what_is_missing_is_named_before_what_is_too_much(missing: str) -> None:
    body = {"nosuch": 1} | {name: value for name, value in GOOD.items() if name != missing}
    with pytest.raises(Malformed, match=f"^{missing}: Field required$"):
        Body.read_json(json.dumps(body))


@pytest.mark.parametrize(
    "raw",
    [b"", b"{no", b"[]", b'"x"', b"null", b'{"reason": "\xff"}', b"[" * 5000 + b"]" * 5000, b'{"seconds": NaN}', b'{"seconds": Infinity}',
     b'{"reason": "\\ud800"}', b'{"rest": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", b'{"seconds": 1e999}', b"{} {}", b"\xef\xbb\xbf{}",
     b'{"count": ' + b"9" * 5000 + b"}"],
)  # fmt: skip
def test_what_is_no_json_is_refused_and_never_an_error_of_another_kind(raw: bytes) -> None:
    with pytest.raises(Malformed):
        Body.read_json(raw)


def test_a_good_one_is_read_and_a_key_that_stands_twice_counts_once() -> None:
    body = Body.read_json(b'{"action": "kill", "reason": "r", "scope": {"reach": "all"}, "seconds": 1, "count": 1, "count": 2}')
    assert (body.scope.reach, body.seconds, body.count, body.many, body.id) == ("all", 1.0, 2, [], None)


def test_a_view_takes_unknown_keys_from_a_newer_peer() -> None:
    assert Shown.read_json(b'{"cost": 1, "new": {}}') == Shown(cost=1.0)


def test_a_fraction_is_shown_as_one_whoever_made_the_message() -> None:
    assert Shown(cost=1, left=2).to_json() == Shown.read_json(b'{"cost": 1, "left": 2}').to_json() == '{"cost":1.0,"left":2.0,"rows":[]}'
    assert Many(by_name={"a": 1}, each=[1, None], whole={"a": 1}).to_json() == '{"by_name":{"a":1.0},"each":[1.0,null],"whole":{"a":1}}'
    assert Shown(left=None).replaced(cost=3).as_data() == {"cost": 3.0, "left": None, "rows": []}


def test_what_is_left_out_is_a_fresh_list_for_each() -> None:
    one, other = Shown(), Shown()
    one.rows.append("x")
    assert other.rows == []


def test_text_that_is_not_valid_unicode_is_no_json_but_data() -> None:
    view = Shown(rows=["\ud800"])
    with pytest.raises(ValueError, match="surrogates"):
        view.to_json()
    assert view.as_data(exclude={"cost"}) == {"left": None, "rows": ["\ud800"]}


class Lock(Request, kw_only=True, tag_field="kind", tag="lock"):
    places: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if "" in self.places:
            raise Malformed(("places", str(self.places.index(""))), "a place has a name")


class Door(Request, kw_only=True, tag_field="kind", tag="door"):
    wide: Annotated[int, Meta(ge=1)] = 1


class House(Request, kw_only=True):
    parts: list[Lock | Door] = []
    comment: str = field(default="", name="_comment")


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"kind": "lock", "places": ["a", ""]}, "parts.1.places.1: a place has a name"),
        ({"kind": "lock", "places": [7]}, "parts.1.places.0: Input should be a valid string"),
        ({"kind": "lock", "wide": 3}, "parts.1.wide: Extra inputs are not permitted"),
        ({"kind": "door", "wide": 0}, "parts.1.wide: Input should be greater than or equal to 1"),
        ({"kind": "roof"}, "parts.1.kind: Input should be 'lock' or 'door'"),
        ({"kind": ["door"]}, "parts.1.kind: Input should be 'lock' or 'door'"),
        ({"wide": 3}, "parts.1.kind: Field required"),
        ("door", "parts.1: Input should be an object"),
    ],
)
def test_one_of_several_kinds_is_told_by_its_own_field(part: object, said: str) -> None:
    with pytest.raises(Malformed) as refused:
        House.read({"parts": [{"kind": "door"}, part]})
    assert str(refused.value) == said
    assert House.read({"_comment": "c", "parts": [{"kind": "door", "wide": 2}]}).parts == [Door(wide=2)]
