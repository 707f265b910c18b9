"""What polkit is asked, and that every answer but one is no. A program of the test's stands for pkcheck(1)."""

from __future__ import annotations

import asyncio
import os
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from console.domain.engine.command import Record
from console.domain.roles.rights import Right
from console.killswitch.kernel.processes import start_ticks
from console.supervisor.http import polkit
from console.supervisor.http.polkit import ACTIONS, Polkit

SHIPPED = Path(__file__).parents[4] / "packaging/packages/files/watchfloor/usr/share/polkit-1/actions" / polkit.POLICY.name
ME = os.getpid()


class Asked:
    """A stand-in for pkcheck that notes its arguments and ends as it is told to."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.records, self.agents = folder, list[Record](), set[int]()
        self.check, self.policy = folder / "pkcheck", folder / "policy"
        self.policy.touch()
        self.answers("exit 0")

    def answers(self, shell: str) -> None:
        self.check.write_text(f'#!/bin/sh\necho "$$ $*" >>"{self.folder}/said"\n{shell}\n')
        self.check.chmod(0o755)

    def polkit(self) -> Polkit:
        return Polkit(self.records.append, lambda: self.agents, self.check, self.policy)

    def said(self) -> list[list[str]]:
        file = self.folder / "said"
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


async def test_it_names_the_process_by_its_start_and_its_account_and_a_yes_is_on_record(asked: Asked) -> None:
    assert await asked.polkit().allows(Right.REARM, 1234, ME)
    [said] = asked.said()
    assert said[1:6] == ["--action-id", "io.watchfloor.rearm", "--process", f"{ME},{start_ticks(ME)},1234", "--allow-user-interaction"]
    assert said[6:11] == ["--detail", "process", str(ME), "--detail", "program"] and "python" in said[11]
    [record] = asked.records
    assert (record.actor, record.kind, record.must) == ("operator:1234", "polkit.allowed", True)


@pytest.mark.parametrize("code", [1, 2, 3, 126, 127, 139, 255])
async def test_every_other_answer_is_no(asked: Asked, code: int) -> None:
    asked.answers(f"exit {code}")
    assert not await asked.polkit().allows(Right.SETTINGS, 1234, ME) and len(asked.said()) == 1 and not asked.records


async def test_one_that_is_killed_or_cannot_be_started_is_no(asked: Asked) -> None:
    asked.answers("kill -9 $$")
    assert not await asked.polkit().allows(Right.RELEASE, 1234, ME)
    asked.check.write_text("#!/nonexistent\n")
    assert not await asked.polkit().allows(Right.RELEASE, 1234, ME)
    asked.check.chmod(0o644)
    assert not await asked.polkit().allows(Right.RELEASE, 1234, ME)


async def test_one_that_hangs_is_no_and_is_killed(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polkit, "BOUND_S", 0.5)
    asked.answers("exec sleep 1000")
    assert not await asked.polkit().allows(Right.REARM, 1234, ME)
    for pid, *_ in asked.said():
        assert start_ticks(int(pid)) is None


async def test_one_account_has_one_question_at_a_time_and_all_together_a_few(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    asked.answers(f'while [ ! -e "{asked.folder}/go" ]; do sleep 0.05; done')
    it = asked.polkit()
    waiting = [asyncio.create_task(it.allows(Right.REARM, uid, ME)) for uid in range(1000, 1000 + polkit.MOST)]
    await asyncio.sleep(0)
    assert not await it.allows(Right.REARM, 5000, ME)
    (asked.folder / "go").touch()
    assert all(await asyncio.gather(*waiting)) and await it.allows(Right.REARM, 1000, ME)


async def test_a_second_request_of_an_account_waits_for_its_turn(asked: Asked) -> None:
    asked.answers(f'while [ ! -e "{asked.folder}/go" ]; do sleep 0.05; done; exit 1')
    it = asked.polkit()
    first = asyncio.create_task(it.allows(Right.SETTINGS, 1000, ME))
    while not asked.said():
        await asyncio.sleep(0.01)
    second = asyncio.create_task(it.allows(Right.SETTINGS, 1000, ME))
    await asyncio.sleep(0.1)
    assert len(asked.said()) == 1
    others = [asyncio.create_task(it.allows(Right.SETTINGS, 1000, ME)) for _ in range(polkit.MOST)]
    await asyncio.sleep(0.1)
    assert sum(one.done() for one in others) == polkit.MOST - polkit.MOST_OF_ONE + 2, "one account takes no place from others"
    (asked.folder / "go").touch()
    asked.answers("exit 0")
    assert not await first and await second and sum(await asyncio.gather(*others)) == polkit.MOST_OF_ONE - 2


async def test_no_person_is_asked_for_a_password_for_an_agent_or_what_it_started(asked: Asked) -> None:
    for asked.agents in ({ME}, {os.getppid()}):
        assert not await asked.polkit().allows(Right.SETTINGS, 1000, ME) and not asked.said()


async def test_what_has_no_action_and_a_process_that_is_gone_are_not_asked_about(asked: Asked) -> None:
    it = asked.polkit()
    assert not await it.allows(Right.ADMINISTER, 1234, ME) and not await it.allows(Right.REARM, 1234, 0)
    assert not await it.allows(Right.REARM, 1234, 1 << 22) and not asked.said()


@pytest.mark.parametrize("missing", ["check", "policy"])
async def test_without_polkit_or_without_the_policy_nothing_is_asked(asked: Asked, missing: str) -> None:
    getattr(asked, missing).unlink()
    assert asked.polkit().grants == frozenset() and not await asked.polkit().allows(Right.REARM, 1234, ME) and not asked.said()


def test_the_policy_that_is_shipped_has_each_action_and_asks_for_an_administrator_each_time() -> None:
    actions = {one.attrib["id"]: one for one in ET.parse(SHIPPED).getroot().iter("action")}  # noqa: S314 - our own file
    assert set(actions) == set(ACTIONS.values())
    for one in actions.values():
        defaults = one.find("defaults")
        assert defaults is not None and [rule.text for rule in defaults] == ["auth_admin"] * 3
        assert one.findtext("description") and one.findtext("message")
