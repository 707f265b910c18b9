"""A running Egress in front of a small internet, with sandboxes: the stage of every integration test of egress."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from console.domain.network import Allowlist, AllowlistEntry, EgressRecord
from console.egress.service import Egress
from tests.fakes.egress_box import Box
from tests.fakes.egress_world import DNS_PORT, World

PATIENCE_S = 60.0
PATIENT = tuple(
    f"console.egress.{name}" for name in ("live.CONFIRM_S", "relays._READY_S", "relays._REQUEST_S", "resolver_process._READY_S")
)
"""What is waited for so long on a stage: who is only slow, on a busy machine, is not taken for one that hangs."""


def entry(
    entry_id: str, host: str, port: int = 443, methods: str = "", paths: str = "", networks: str = "", *, reason: str = "test"
) -> AllowlistEntry:
    """An entry; methods, paths and networks separated by blanks."""
    lists = (tuple(text.split()) for text in (methods, paths, networks))
    methods_, paths_, networks_ = lists
    return AllowlistEntry(entry_id, host, port, methods_, paths_, reason, "tester", private_networks=networks_)


@dataclass
class Stage:
    """A running Egress in front of a World."""

    world: World
    egress: Egress
    records: list[EgressRecord]
    deaths: list[str]
    folder: Path

    @contextmanager
    def box(self, agent_id: str) -> Iterator[Box]:
        """A sandbox that is attached as ``agent_id`` for the time of the block."""
        box = Box()
        try:
            self.egress.attach(agent_id, box.pid, box.start_ticks, False)
            yield box
        finally:
            box.stop()
            self.egress.detach(agent_id)

    def record(self, agent_id: str, *, within_s: float = 60.0, **wanted: object) -> EgressRecord:
        """The first record of an agent that has these fields."""
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            for record in list(self.records):
                if record.agent_id == agent_id and all(getattr(record, k) == v for k, v in wanted.items()):
                    return record
            time.sleep(0.02)
        raise AssertionError(f"no record of {agent_id} with {wanted} among {self.records}")


@contextmanager
def stage(allowlist: Allowlist | None = None, **options: Any) -> Iterator[Stage]:
    """Starts World and Egress, which takes the allowlist, and ends both."""
    folder = Path(tempfile.mkdtemp(prefix="eg-"))
    world = World(folder)
    records: list[EgressRecord] = []
    deaths: list[str] = []
    given: dict[str, Any] = {"netns": world.netns, "resolver": ("127.0.0.1", DNS_PORT), "on_relay_death": deaths.append} | options
    egress = Egress(folder / "egress", folder / "run", records.append, **given)
    with pytest.MonkeyPatch.context() as patience:
        for bound in PATIENT:
            patience.setattr(bound, PATIENCE_S)
        try:
            egress.start()
            if allowlist is not None:
                applied = egress.apply(allowlist)
                assert applied.ok, applied.words
            yield Stage(world, egress, records, deaths, folder)
        finally:
            egress.stop()
            world.stop()
            shutil.rmtree(folder)
