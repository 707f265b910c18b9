"""A program that Watchfloor runs to ask for its version is no agent."""

from __future__ import annotations

from pathlib import Path

from console.domain.process import asked
from console.sources.kinds import PROGRAMS
from console.sources.processes import ProcessTable
from console.sources.programs import Programs
from tests.fakes.proc import FakeProc


def test_a_program_that_watchfloor_asks_for_its_version_is_no_agent_nor_what_it_starts_itself(tmp_path: Path) -> None:
    proc = FakeProc(tmp_path / "proc")
    proc.add(11, exe="/opt/p/node_modules/opencode-ai/bin/opencode.exe", argv=("opencode", "--version"))
    child = proc.add(12, exe="/opt/p/node_modules/opencode-ai/bin/opencode.exe", argv=("opencode",))
    with (child / "status").open("a") as status:
        status.write("PPid:\t11\n")
    proc.add(13, exe="/opt/p/node_modules/opencode-ai/bin/opencode.exe", argv=("opencode", "--version"))
    asked.ASKED.add(11)
    try:
        found = [one.facts.identity.pid for one in Programs(PROGRAMS, ProcessTable(proc.root)).running()]
    finally:
        asked.ASKED.discard(11)
    assert found == [13], "what another person asks is said by its arguments alone, which are a claim"
