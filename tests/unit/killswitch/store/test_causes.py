"""Causes of freeze: each removes only itself; they come back as they were."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.domain.guard import CAUSES
from console.killswitch.kernel import descendants, processes
from console.killswitch.store import causes as causes_module
from console.killswitch.store import registry
from console.killswitch.store.atomic_file import Damaged, seal, write_whole
from console.killswitch.store.causes import Causes, Hold, Wish, boottime, fulfil, set_frozen, why_not_frozen
from console.killswitch.store.registry import Entry, Held
from tests.fakes.guard_world import until


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(CAUSES))))
def test_frozen_exactly_while_some_cause_was_added_and_not_removed(steps: list[tuple[bool, str]]) -> None:
    model: set[str] = set()
    causes = Causes(Path("/nowhere"))
    for add, cause in steps:
        (causes.add if add else causes.remove)("a", cause)
        (model.add if add else model.discard)(cause)
    assert causes.of("a") == model and causes.having("operator") == (["a"] if "operator" in model else [])


def test_an_account_lifts_its_own_freeze_only_and_the_supervisor_any() -> None:
    causes = Causes(Path("/nowhere"))
    for uid in (1000, 1001, None):
        causes.add("a", "operator", uid)
    assert causes.may_lift("a", "operator", 1000) and not causes.may_lift("a", "operator", 1002)
    causes.remove("a", "operator", 1000)
    assert not causes.may_lift("a", "operator", 1000) and causes.of("a") == {"operator"}
    causes.remove("a", "operator", 1001)
    assert causes.of("a") == {"operator"} and causes.may_lift("a", "operator", None)  # the supervisor's freeze still stands
    causes.remove("a", "operator")
    assert causes.of("a") == set() and causes.frozen_by == {} and not causes.may_lift("a", "operator", None)


def test_they_come_back(tmp_path: Path) -> None:
    causes = Causes(tmp_path / "c")
    causes.add("a", "hold")
    causes.holds["h"] = Hold("h", "k", "ann", ["a"], 12.0)
    causes.soft_stop, causes.lease_until = "why", boottime() + 50
    causes.save()
    causes.add("b", "operator", 1000)
    causes.save()
    again = Causes(tmp_path / "c")
    again.load()
    assert again.frozen_by == {"b": {1000}} and again.by_agent.pop("b") == {"operator"}
    assert again.by_agent == {"a": {"hold"}} and again.soft_stop == "why" and again.lease_until == causes.lease_until
    assert again.holds["h"].deadline is None and again.holds["h"].why  # a restart never fires a hold


def test_a_lease_of_another_boot_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    causes = Causes(tmp_path / "c", lease_until=boottime() + 1000)
    causes.save()
    monkeypatch.setattr(causes_module, "boot_id", lambda: "another")
    again = Causes(tmp_path / "c")
    again.load()
    assert again.lease_until == 0.0


@pytest.mark.parametrize(
    "body", [{}, {"causes": [], "holds": [], "soft_stop": "", "lease": None}, {"causes": {}, "holds": [{}], "soft_stop": "", "lease": None}]
)
def test_a_wrong_shape_is_damaged(tmp_path: Path, body: dict[str, object]) -> None:
    write_whole(tmp_path / "c", seal(body))
    with pytest.raises(Damaged):
        Causes(tmp_path / "c").load()


def test_unknown_causes_on_disk_are_left_out(tmp_path: Path) -> None:
    write_whole(tmp_path / "c", seal({"causes": {"a": ["operator", "evil"]}, "holds": [], "soft_stop": "", "lease": None}))
    causes = Causes(tmp_path / "c")
    causes.load()
    assert causes.of("a") == {"operator"}


class Pauser:
    def __init__(self, answer: str, paused: bool = False) -> None:
        self.answer, self.asked, self.paused = answer, list[str](), paused

    def is_paused(self, container_id: str) -> bool:
        return self.paused

    def pause(self, container_id: str) -> str:
        self.asked.append(f"pause {container_id}")
        return self.answer

    def unpause(self, container_id: str) -> str:
        self.asked.append(f"unpause {container_id}")
        return self.answer


def test_a_container_without_a_writable_cgroup_is_paused_by_the_engine() -> None:
    held = Held(Entry("a", "container", "contained", 0, container_id="ab" * 32))
    good, bad, liar = Pauser("204", paused=True), Pauser("HTTP 500", paused=True), Pauser("204")
    assert set_frozen(held, True, good) == "sent" and good.asked == [f"pause {'ab' * 32}"]  # type: ignore[arg-type]
    assert "not paused" in set_frozen(held, True, liar)  # type: ignore[arg-type]
    assert set_frozen(held, False, bad).startswith("failed") and bad.asked == [f"unpause {'ab' * 32}"]  # type: ignore[arg-type]


def test_what_cannot_be_opened_is_not_called_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(registry, "_open_init", full)
    held = Held(Entry("a", "process", "managed", 0, confirmed=True, pid=4242, start_ticks=1))
    held.open()
    assert set_frozen(held, True, None).startswith("failed") and "Too many" in why_not_frozen(held, has_engine=False)


def test_a_process_that_cannot_be_opened_is_not_called_stopped(sleeper: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(Entry("a", "process", "managed", 0, confirmed=True, pid=sleeper[0], start_ticks=sleeper[1]))
    held.open()
    assert "not stopped" in why_not_frozen(held, has_engine=False)
    with monkeypatch.context() as patch:
        patch.setattr("os.pidfd_open", lambda *_: (_ for _ in ()).throw(OSError(errno.EMFILE, "Too many open files")))
        assert "Too many" in set_frozen(held, True, None)
    assert set_frozen(held, True, None) == "sent"
    until(lambda: not why_not_frozen(held, has_engine=False), "stopped")
    assert set_frozen(held, False, None) == "sent"
    held.close()


def family(pid: int) -> list[int]:
    """It and its children."""
    return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def test_the_same_looks_serve_however_many_are_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred that no kernel object holds took a walk over /proc each, and a press waited for the last of them."""
    children = [subprocess.Popen(["/bin/sh", "-c", "sleep 60 & wait"], start_new_session=True) for _ in range(5)]
    several = []
    try:
        for n, child in enumerate(children):
            until(lambda pid=child.pid: len(family(pid)) == 2, "it has its child")  # type: ignore[misc]
            held = Held(
                Entry(f"a{n}", "process", "managed", 0, confirmed=True, pid=child.pid, start_ticks=processes.start_ticks(child.pid) or 0)
            )
            held.open()
            several.append(held)
        looks, real = list[int](), descendants.read_table
        monkeypatch.setattr(descendants, "read_table", lambda: looks.append(1) or real())  # type: ignore[func-returns-value]
        monkeypatch.setattr(descendants, "APART_S", 0.0)  # however quick this machine is
        assert fulfil([Wish(held, True) for held in several], None) == ["sent"] * 5
        assert len(looks) <= 5 + 2, "one each to begin with, for a look is never recent here; then the same for all"
        until(lambda: not any(why_not_frozen(held, has_engine=False) for held in several), "stopped")
        assert all(processes.state(pid) == "T" for child in children for pid in family(child.pid))
        assert fulfil([Wish(held, False) for held in several], None) == ["sent"] * 5
    finally:
        for held in several:
            held.close()
        for child in children:
            os.killpg(child.pid, signal.SIGKILL)  # the session this test started
            child.wait()


def test_letting_go_on_takes_no_more_than_one_look(sleeper: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two hundred agents each took two walks over /proc, and a press waited for the last."""
    held = Held(Entry("a", "process", "managed", 0, confirmed=True, pid=sleeper[0], start_ticks=sleeper[1]))
    held.open()
    assert set_frozen(held, True, None) == "sent"
    looks, real = list[int](), descendants.read_table
    monkeypatch.setattr(descendants, "read_table", lambda: looks.append(1) or real())  # type: ignore[func-returns-value]
    assert set_frozen(held, False, None) == "sent" and len(looks) <= 1
    until(lambda: processes.state(sleeper[0]) == "S", "it goes on")
    held.close()


def test_nothing_to_freeze_is_gone() -> None:
    assert set_frozen(Held(Entry("a", "process", "managed", 0)), True, None) == "gone"
