"""Known programs among processes: by what the kernel mapped, once for all who ask."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from console.domain.agent import ProcessIdentity
from console.sources import programs
from console.sources.claude_code.program import CLAUDE
from console.sources.kinds import PROGRAMS
from console.sources.processes import ProcessFacts, ProcessTable
from console.sources.programs import Programs
from tests.fakes.proc import FakeProc


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path / "proc")


def test_programs_are_told_by_their_executable_or_the_script_an_interpreter_runs(proc: FakeProc) -> None:
    proc.add(1, exe="/usr/bin/claude")
    proc.add(2, exe="/home/x/.local/share/claude/versions/2.1.330")
    proc.add(3, exe="/usr/bin/node", argv=("node", "/usr/lib/node_modules/@google/gemini-cli/dist/index.js"))
    proc.add(4, exe="/usr/bin/python3.11", argv=("python3", "/home/x/.local/bin/aider"))
    proc.add(5, exe="/usr/bin/node", argv=("node", "server.js"))
    proc.add(6, exe="/usr/bin/copilot", argv=("copilot",))  # another vendor's program has that name
    proc.add(7, exe="/usr/sbin/sshd", argv=("claude",))
    found = {one.facts.identity.pid: one.program.name for one in Programs(PROGRAMS, ProcessTable(proc.root)).running()}
    assert found == {1: "claude", 2: "claude", 3: "gemini", 4: "aider"}


@pytest.mark.parametrize(
    ("exe", "argv", "is_claude"),
    [
        ("/usr/local/bin/claude", ("anything",), True),
        ("/home/a/.local/share/claude/versions/2.1.330", ("claude",), True),
        ("/usr/local/bin/claude (deleted)", ("claude",), True),
        ("/usr/bin/node", ("claude",), True),
        ("/usr/bin/node", ("node", "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js"), True),
        ("/usr/bin/node", ("node", "/usr/local/bin/claude"), True),
        ("/usr/bin/node", ("node", "server.js", "-x", "--y", "/usr/local/bin/claude"), False),
        ("/usr/bin/python3.11", ("claude",), False),
        ("/usr/bin/sleep", ("claude", "/usr/local/bin/claude"), False),
        ("/usr/bin/node", (), False),
        ("", ("claude",), False),
        ("/usr/bin/claudette", ("claude",), False),
        ("/home/a/p/node_modules/@anthropic-ai/claude-code/bin/claude.exe", ("claude",), True),
        (
            "/home/a/.local/share/pnpm/5/.pnpm/@anthropic-ai+claude-code@2.1.330/node_modules/@anthropic-ai/claude-code/bin/claude.exe",
            (),
            True,
        ),
        ("/home/a/.bun/install/global/node_modules/@anthropic-ai/claude-code-linux-x64/claude", (), True),
        ("/home/a/p/node_modules/@anthropic-ai/claude-code/bin/renamed", (), True),
        ("/home/a/p/node_modules/@anthropic-ai/claude-code/vendor/ripgrep/x64-linux/rg", (), False),
        ("/home/a/p/node_modules/@anthropic-ai/claude-code-evil/../x/rg/y", (), False),
        ("/home/a/p/node_modules/not-anthropic-ai/claude-code/bin/tool", (), False),
        ("/usr/bin/node", ("node", "/home/a/p/node_modules/.bin/claude"), True),
        ("/usr/bin/node-22", ("node", "/home/a/p/node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs"), True),
    ],
)
def test_the_executable_decides_and_argv_alone_never_does(exe: str, argv: tuple[str, ...], is_claude: bool) -> None:
    facts = ProcessFacts(ProcessIdentity(1, 1), (0, 0), exe, argv, "/")
    assert CLAUDE.is_run_by(facts) is is_claude


@pytest.mark.parametrize(
    ("exe", "argv", "name"),
    [
        ("/home/a/p/node_modules/opencode-ai/bin/opencode.exe", ("opencode",), "opencode"),
        ("/home/a/p/node_modules/opencode-linux-x64/bin/opencode", ("opencode",), "opencode"),
        ("/usr/bin/node", ("node", "/home/a/p/node_modules/.bin/qwen"), "qwen"),
        ("/usr/bin/node", ("/usr/bin/node", "--no-warnings", "/home/a/p/node_modules/@qwen-code/qwen-code/cli-entry.js"), "qwen"),
        ("/usr/bin/node", ("node", "/home/a/.npm/_npx/1f/node_modules/@google/gemini-cli/bundle/gemini.js"), "gemini"),
        ("/usr/bin/node", ("node", "/home/a/p/node_modules/@github/copilot/index.js"), "copilot"),
        ("/usr/bin/python3.11", ("python", "/home/a/.local/pipx/venvs/aider-chat/bin/aider"), "aider"),
        ("/usr/bin/node", ("node", "/home/a/gemini-notes/server.js"), ""),
        ("/home/a/opencode/bin/server", ("server",), ""),
    ],
)
def test_a_program_is_known_by_its_package_however_it_was_installed(proc: FakeProc, exe: str, argv: tuple[str, ...], name: str) -> None:
    proc.add(1, exe=exe, argv=argv)
    assert [one.program.name for one in Programs(PROGRAMS, ProcessTable(proc.root)).running()] == [name] * bool(name)


def test_one_walk_serves_all_who_ask_and_a_reused_number_is_another_process(proc: FakeProc) -> None:
    folder = proc.add(1, start=10)
    programs = Programs(PROGRAMS, ProcessTable(proc.root))
    first = programs.running()
    assert programs.running() is first
    (folder / "stat").write_text((folder / "stat").read_text().replace(" 10 0", " 11 0"))
    (again,) = programs.running(fresh=True)
    assert again.facts.identity.start_ticks == 11


def test_container_and_own_agent_are_the_kernels_word_the_outermost_first(proc: FakeProc) -> None:
    box, other = "ab" * 32, "cd" * 32
    proc.add(1, cgroup=f"0::/docker/{box}/docker/{other}")
    (one,) = Programs(PROGRAMS, ProcessTable(proc.root), whose=lambda pid, cgroup: f"{pid}" if box in cgroup else "").running()
    assert (one.container_id, one.agent_id) == (box, "1")


def test_who_may_not_be_shown_is_not(proc: FakeProc) -> None:
    proc.add(1)
    assert Programs(PROGRAMS, ProcessTable(proc.root), pids=lambda _: False).running() == ()
    assert Programs(PROGRAMS, ProcessTable(proc.root)).whose(1) == ""


def test_a_proc_that_cannot_be_read_is_said_by_whoever_asks(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        Programs(PROGRAMS, ProcessTable(tmp_path / "nothing")).running()
    assert os.getpid() not in {one.facts.identity.pid for one in Programs(PROGRAMS).running()}


def test_what_is_the_same_after_a_while_stays_the_same_object_and_a_new_user_is_seen(
    proc: FakeProc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "FACTS_S", -1.0)
    folder = proc.add(1, uid=5)
    asked = Programs(PROGRAMS, ProcessTable(proc.root))
    (first,) = asked.running()
    (again,) = asked.running(fresh=True)
    assert again is first
    (folder / "status").write_text("Name:\tx\nUid:\t6\t6\t6\t6\n")
    (other,) = asked.running(fresh=True)
    assert other.facts.uids == (6, 6)


def test_who_ends_is_gone_at_once_and_who_becomes_another_program_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "HELD_EXE_S", 0.05)
    exe = tmp_path / "claude"
    shutil.copy(shutil.which("sleep") or "/usr/bin/sleep", exe)
    child = subprocess.Popen([str(exe), "600"])
    asked = Programs(PROGRAMS)

    def sees() -> bool:
        return any(one.facts.identity.pid == child.pid for one in asked.running(fresh=True))

    def until_sees(is_seen: bool) -> None:
        end = time.monotonic() + 60
        while sees() is not is_seen:
            assert time.monotonic() < end

    try:
        until_sees(True)
        assert asked._kept[child.pid].is_held and asked.running(fresh=True) is asked.running(fresh=True)
        monkeypatch.setattr(asked, "_may_be", lambda _exe: False)  # as if it were another program from now on
        until_sees(False)
        monkeypatch.undo()
        until_sees(True)
        assert asked._kept[child.pid].is_held
    finally:
        child.kill()
    until_sees(False)  # nobody has waited for it: it is still in the table
    child.wait()


def test_an_adoption_makes_everybody_be_looked_at_again(proc: FakeProc) -> None:
    proc.add(1)
    ours: list[str] = []
    asked = Programs(PROGRAMS, ProcessTable(proc.root), whose=lambda _pid, _cgroup: "".join(ours), adopted=lambda: tuple(ours))
    assert [one.agent_id for one in asked.running()] == [""]
    ours.append("a-1")
    assert [one.agent_id for one in asked.running(fresh=True)] == ["a-1"]
