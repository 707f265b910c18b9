"""A type only ever takes destinations away."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.domain.network import EVERYTHING, MODEL, Allowlist, AllowlistEntry, Narrowing, Sensitivity, covers, narrow

HOSTS = ("a.test", "b.test", "*.test", "*.a.test", "x.a.test", "*.x.a.test", "test", "ba.test")


def left(entries: tuple[str, ...], only: tuple[str, ...], never: tuple[str, ...] = ()) -> list[str]:
    allowlist = Allowlist(1, tuple(AllowlistEntry(f"e{n}", host, 443) for n, host in enumerate(entries)))
    return [e.host for e in narrow(allowlist, Narrowing(only, never)).entries]


@pytest.mark.parametrize(
    ("entries", "only", "never", "wanted"),
    [
        (("a.test", "b.test"), ("a.test",), (), ["a.test"]),
        (("a.test",), (), (), []),
        (("*.test",), ("a.test", "b.test", "other"), (), ["a.test", "b.test"]),
        (("x.a.test",), ("*.a.test",), (), ["x.a.test"]),
        (("*.x.a.test",), ("*.a.test",), (), ["*.x.a.test"]),
        (("ba.test", "a.test"), ("*.a.test",), (), []),
        (("*.a.test",), ("*.a.test",), ("x.a.test",), []),
        (("*.test",), ("a.test", "b.test"), ("*.test",), []),
        (("a.test", "b.test"), ("a.test", "b.test"), ("b.test",), ["a.test"]),
    ],
)
def test_what_is_left(entries: tuple[str, ...], only: tuple[str, ...], never: tuple[str, ...], wanted: list[str]) -> None:
    assert left(entries, only, never) == wanted


def test_nothing_is_taken_from_an_agent_without_a_type() -> None:
    allowlist = Allowlist(3, (AllowlistEntry("e1", "a.test", 443),))
    assert narrow(allowlist, None) is allowlist


names = st.lists(st.sampled_from(HOSTS), max_size=4).map(tuple)


@given(names, names, names, st.sampled_from([h for h in HOSTS if "*" not in h]))
def test_no_destination_is_ever_added(entries: tuple[str, ...], only: tuple[str, ...], never: tuple[str, ...], host: str) -> None:
    reached = any(covers(e, host) for e in left(entries, only, never))
    assert not reached or (any(covers(e, host) for e in entries) and any(covers(o, host) for o in only))
    assert not (reached and any(covers(n, host) for n in never))


@pytest.mark.parametrize("by", [None, Narrowing(("*.test",))])
def test_what_may_not_receive_the_data_of_a_session_is_no_destination_of_it(by: Narrowing | None) -> None:
    allowlist = Allowlist(3, tuple(AllowlistEntry(level, f"{level.lower()}.test", may_receive=level) for level in Sensitivity))
    for level in Sensitivity:
        found = narrow(allowlist, by, level)
        assert [e.may_receive for e in found.entries] == [one for one in Sensitivity if one.level >= level.level]
        assert found.version == 3
    assert narrow(allowlist, None) is allowlist


@pytest.mark.parametrize(
    ("only", "never", "wanted"),
    [
        ((EVERYTHING,), (), ["a.test", "m.test"]),
        (("a.test",), (), ["a.test"]),
        (("m.test",), (), ["m.test"]),
        ((), (), []),
        ((EVERYTHING,), ("m.test",), ["a.test"]),
        ((EVERYTHING,), ("*.test",), []),
    ],
)
def test_the_way_to_its_model_is_one_more_entry_which_its_type_may_take_away(
    only: tuple[str, ...], never: tuple[str, ...], wanted: list[str]
) -> None:
    allowlist = Allowlist(1, (AllowlistEntry("e1", "a.test", 443),))
    found = narrow(allowlist, Narrowing(only, never, own=("m.test",)))
    assert [e.host for e in found.entries] == wanted
    assert all((e.entry_id, e.port) == (MODEL, 443) for e in found.entries if e.host == "m.test")


def test_its_model_gets_no_data_of_a_class_that_no_operator_allowed() -> None:
    by = Narrowing((EVERYTHING,), own=("m.test",))
    assert [len(narrow(Allowlist(), by, level).entries) for level in Sensitivity] == [1, 1, 0, 0]
