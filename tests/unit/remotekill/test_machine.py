"""The state machine, exhaustively, against an oracle that was written from the table and shares no code with it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from console.remotekill import document, machine
from console.remotekill.document import Junk, KillOrder, Order
from console.remotekill.machine import RELEASED_KEPT, HostState, Latch, LiftSoftStop, Mode, Read, Released, Restarted, SoftStop, observe
from tests.fakes.kill_model import ORDER, walk

OBSERVATIONS = 31


@pytest.mark.parametrize("quorum", [1, 2])
def test_every_sequence_of_two_observations_follows_the_table(fleet: Any, quorum: int) -> None:
    assert walk(fleet, quorum, 2, document, machine) == 2 * OBSERVATIONS**2


@pytest.mark.long
@pytest.mark.parametrize("depth", [3, 4])
@pytest.mark.parametrize("quorum", [1, 2])
def test_every_sequence_of_three_and_four_observations_follows_the_table(fleet: Any, quorum: int, depth: int) -> None:
    assert walk(fleet, quorum, depth, document, machine) == depth * OBSERVATIONS**depth


# --- the walk finds what is planted -----------------------------------------------------------------------------------

MUTANTS = {
    "signatures are counted, not keys": (document, "good.add(public)", "good.add(str(entry).encode())"),
    "kids are counted, not keys": (document, "good.add(public)", "good.add(entry['kid'].encode())"),
    "one signature is enough": (document, "len(signed_by) < keys.quorum", "len(signed_by) < 1"),
    "no signature is needed": (document, "if keys.quorum < 1 or len(signed_by) < keys.quorum:", "if False:"),
    "a stranger's key counts": (document, "public = keys.keys[kid]", "public = keys.keys[kid]; return public"),
    "any fleet will do": (document, 'if document["fleet"] != keys.fleet:', "if False:"),
    "the epoch is not signed": (document, 'if k != "sigs"', 'if k not in ("sigs", "epoch")'),
    "an order is its content alone": (machine, "if number else order in content.releases", "if number else bool(content.releases)"),
    "one covered order is enough": (
        machine,
        "not all(_covers(content, order) for order in state.latched)",
        "not any(_covers(content, order) for order in state.latched)",
    ),
    "a baseline releases": (machine, "    if not all(_covers", "    if (content.releases or content.settled) and not all(_covers"),
    "a release settles the next number too": (machine, "number <= content.settled if number", "number <= content.settled + 1 if number"),
    "a release covers no number": (machine, "number <= content.settled if number", "False if number"),
    "a settled number kills again": (machine, "if number_of(seen.order) <= state.settled:", "if False:"),
    "what is settled is forgotten by a release": (
        machine,
        "replace(accepted, latched=(), released=released)",
        "replace(accepted, latched=(), released=released, settled=0)",
    ),
    "what is settled is forgotten": (machine, "        settled=max(state.settled, content.settled),\n", ""),
    "a hidden kill is nothing": (machine, "    for order, reason in seen.kills:", "    for order, reason in ():"),
    "a hidden kill that was released kills": (machine, "*after.over, *seen.released)", "*after.over)"),
    "a new host obeys what was long over": (machine, "if state.judged is None:", "if False:"),
    "an old epoch releases": (machine, "if content.epoch < state.epoch:", "if False:"),
    "the same epoch releases": (
        machine,
        "    if content.epoch == state.epoch:\n        return state, ()",
        "    if False:\n        return state, ()",
    ),
    "the epoch is forgotten": (machine, "        epoch=content.epoch,\n", ""),
    "a released order kills again": (machine, "    if order in (*state.released, *state.over):", "    if False:"),
    "what was released elsewhere kills here": (machine, "(*state.released, *state.over):", "(*state.released,):"),
    "a second kill is not added": (machine, "latched=(*state.latched, order)", "latched=(state.latched or (order,))"),
    "a missing file is nothing": (machine, 'return _distrust(state, "The remote kill file is missing.")', "return state, ()"),
    "junk is nothing": (
        machine,
        'return _distrust(state, f"The remote kill file cannot be trusted: {seen.content.why}.")',
        "return state, ()",
    ),
    "the lease's end is nothing": (
        machine,
        "case LeaseOver():\n            return _distrust(",
        "case LeaseOver():\n            return (state, ()) if state else _distrust(",
    ),
    "an outage stops at once": (
        machine,
        "case Unreadable():\n            return state,",
        "case Unreadable():\n            return replace(state, soft=True),",
    ),
    "unchanged renews while soft": (
        machine,
        "if state.mode is Mode.ARMED else (state, ())",
        "if state.mode is not Mode.KILLED else (state, ())",
    ),
    "a restart starts armed": (machine, "return replace(state, soft=True), (SoftStop(why),)", "return state, (SoftStop(why),)"),
    "a restart forgets the kill": (
        machine,
        "    if state.latched:\n        return state, tuple(",
        "    if False:\n        return state, tuple(",
    ),
}


@contextmanager
def mutated(which: ModuleType, old: str, new: str) -> Iterator[tuple[ModuleType, ModuleType]]:
    """Both modules built anew from their source, one of them with a fault in it."""
    made: list[ModuleType] = []
    try:
        for module in (document, machine):
            source = Path(str(module.__file__)).read_text().replace(f"from {document.__name__} import", "from planted_document import")
            if module is which:
                assert source.count(old) == 1, f"the source has changed: {old!r} is there {source.count(old)} times"
                source = source.replace(old, new)
            made.append(ModuleType(f"planted_{module.__name__.rpartition('.')[2]}"))
            sys.modules[made[-1].__name__] = made[-1]
            exec(compile(source, made[-1].__name__, "exec"), made[-1].__dict__)
        yield made[0], made[1]
    finally:
        for module in made:
            del sys.modules[module.__name__]


def differs(fleet: Any, planted: tuple[ModuleType, ModuleType]) -> bool:
    try:
        for quorum in (2, 1):
            walk(fleet, quorum, 3, *planted)
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize("fault", MUTANTS)
def test_the_walk_finds_every_planted_fault(fleet: Any, fault: str) -> None:
    with mutated(*MUTANTS[fault]) as planted:
        assert differs(fleet, planted), f"not noticed: {fault}"


def test_nothing_is_found_where_nothing_is_planted(fleet: Any) -> None:
    with mutated(machine, "RELEASED_KEPT = 64", "RELEASED_KEPT = 65") as planted:
        assert walk(fleet, 2, 2, *planted) == 2 * OBSERVATIONS**2


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_killing_comes_before_everything_and_names_the_order() -> None:
    state, effects = observe(HostState(soft=False, epoch=1), Read(ORDER["A"], KillOrder("why", "who")))
    assert effects == (Latch(ORDER["A"], "why"),) and state.mode is Mode.KILLED


def test_a_release_tells_what_it_released_and_only_then_lifts() -> None:
    from console.remotekill.document import SignedUnkill

    state = HostState(soft=True, epoch=1, latched=(ORDER["A"], ORDER["A2"]))
    after, effects = observe(state, Read(ORDER["B"], SignedUnkill(2, (ORDER["A"], ORDER["A2"]), "", "", "")))
    assert [type(e) for e in effects][:2] == [Released, LiftSoftStop]
    assert effects[0] == Released((ORDER["A"], ORDER["A2"])) and after.mode is Mode.ARMED


def test_a_restart_while_killed_says_so_again() -> None:
    state = HostState(latched=(ORDER["A"],), epoch=3)
    after, effects = observe(state, Restarted())
    assert after == state and isinstance(effects[0], Latch) and effects[0].remembered


def test_a_soft_stop_says_why() -> None:
    _, effects = observe(HostState(soft=False, epoch=1), Read(ORDER["A"], Junk("its schema is not agent-kill/3")))
    assert isinstance(effects[0], SoftStop) and "schema" in effects[0].why


def test_the_memory_of_released_orders_is_bounded() -> None:
    from console.remotekill.document import SignedUnkill

    state = HostState(soft=False, epoch=0)
    for n in range(RELEASED_KEPT + 10):
        order = Order(f"{n}:sha256:{'0' * 64}")
        state, _ = observe(state, Read(order, KillOrder("", "")))
        state, _ = observe(state, Read(order, SignedUnkill(n + 1, (order,), "", "", "")))
    assert len(state.released) == RELEASED_KEPT and state.mode is Mode.ARMED
