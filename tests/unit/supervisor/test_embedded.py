"""When the pair that a verb started ends by itself."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.services.hooks.installation import command_for
from console.settings.places import Places
from console.sources.kinds import HOOKS
from console.supervisor import embedded
from console.supervisor.http.access import Presence


def idle(places: Places) -> Any:
    """A supervisor with nothing to do."""
    state = SimpleNamespace(live=(), agents={}, killed=False, soft_stop=False)
    core = SimpleNamespace(state=state, hub=SimpleNamespace(listeners=()), launches=())
    return SimpleNamespace(
        presence=Presence(), core=core, places=places, options=SimpleNamespace(linger_s=0.0), ended_idle=False, end=asyncio.Event()
    )


@pytest.mark.parametrize("program", sorted(HOOKS))
def test_it_stays_while_a_hook_asks_it(places: Places, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    hook, rounds = HOOKS[program], 0
    file = tmp_path / hook.place
    file.parent.mkdir(parents=True)
    file.write_bytes(hook.added(b"", command_for(places, program), str(file)))

    async def soon(_seconds: float) -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 3:
            assert not supervisor.ended_idle, "the hook would block every call"
            file.write_bytes(hook.removed(file.read_bytes(), str(file)))

    monkeypatch.setattr(embedded, "asyncio", SimpleNamespace(sleep=soon, to_thread=asyncio.to_thread))
    supervisor = idle(places)
    asyncio.run(embedded.linger(supervisor))
    assert supervisor.ended_idle and supervisor.end.is_set() and rounds == 3


def test_it_stays_while_verbs_ask_it_though_none_of_them_listens(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person who types one verb after another is a client, and must not find another supervisor each minute."""
    clock, rounds = [1000.0], 0
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    supervisor = idle(places)
    supervisor.options.linger_s = 60.0

    async def answer(*_: Any) -> None:
        clock[0] += 1.0

    app = supervisor.presence.noting(answer)

    async def soon(_seconds: float) -> None:
        nonlocal rounds
        rounds += 1
        clock[0] += 20.0
        if rounds <= 9:
            assert not supervisor.ended_idle, f"after {rounds} verbs"
            await app({}, None, None)

    monkeypatch.setattr(embedded, "asyncio", SimpleNamespace(sleep=soon, to_thread=asyncio.to_thread))
    asyncio.run(embedded.linger(supervisor))
    assert supervisor.ended_idle and rounds == 13


def test_a_hook_of_another_instance_keeps_none(places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    hook = HOOKS["claude-code"]
    file = tmp_path / hook.place
    file.parent.mkdir(parents=True)
    other = Places(places.state_dir / "other", places.run_dir, "01234567", False)
    file.write_bytes(hook.added(b"", command_for(other, "claude-code"), str(file)))
    supervisor = idle(places)
    asyncio.run(embedded.linger(supervisor))
    assert supervisor.ended_idle
