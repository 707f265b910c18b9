"""Known programs among processes: by what the kernel mapped, once for all who ask."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
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
    shutil.copy(shutil.which("bash") or "/bin/bash", exe)
    child = subprocess.Popen([str(exe), "-c", 'read line; exec sleep 600; "$0"'], stdin=subprocess.PIPE)
    other = subprocess.Popen([str(exe), "-c", "read line"], stdin=subprocess.PIPE)
    asked = Programs(PROGRAMS)

    def until_seen(*pids: int) -> None:
        end = time.monotonic() + 60
        while known_by(asked) & {child.pid, other.pid} != set(pids):
            assert time.monotonic() < end

    try:
        until_seen(child.pid, other.pid)
        assert asked._kept[child.pid].is_held and asked.running(fresh=True) is asked.running(fresh=True)
        assert child.stdin is not None
        child.stdin.write(b"\n")
        child.stdin.flush()
        until_seen(other.pid)
        other.kill()
        until_seen()  # nobody has waited for it: it is still in the table
    finally:
        for one in (child, other):
            assert one.stdin is not None
            one.kill()
            one.stdin.close()
            one.wait()


def test_an_adoption_makes_everybody_be_looked_at_again(proc: FakeProc) -> None:
    proc.add(1)
    ours: list[str] = []
    asked = Programs(PROGRAMS, ProcessTable(proc.root), whose=lambda _pid, _cgroup: "".join(ours), adopted=lambda: tuple(ours))
    assert [one.agent_id for one in asked.running()] == [""]
    ours.append("a-1")
    assert [one.agent_id for one in asked.running(fresh=True)] == ["a-1"]


class Told:
    """What the kernel would tell, and of how many a walk asked for the executable."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, began: set[int] | None) -> None:
        self.said: set[int] | None = began
        self.asked: list[int] = []
        exe = ProcessTable.exe

        def noted(table: ProcessTable, pid: int) -> str:
            self.asked.append(pid)
            return exe(table, pid)

        monkeypatch.setattr(programs, "exec_news", lambda: self)
        monkeypatch.setattr(ProcessTable, "exe", noted)

    def began(self) -> set[int] | None:
        return self.said


def known_by(asked: Programs) -> set[int]:
    return {one.facts.identity.pid for one in asked.running(fresh=True)}


def real(proc: FakeProc) -> Programs:
    table = ProcessTable(proc.root)
    table.is_real = True
    return Programs(PROGRAMS, table)


def becomes(proc: FakeProc, pid: int, exe: str) -> None:
    place = proc.root / str(pid) / "exe"
    place.unlink()
    place.symlink_to(exe)


def test_where_the_kernel_tells_an_old_process_is_asked_when_it_became_another_and_a_new_one_at_once(
    proc: FakeProc, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told(monkeypatch, set())
    for pid in range(1000, 1080):
        proc.add(pid, exe="/usr/bin/foreign")
    asked = real(proc)
    assert known_by(asked) == set() and len(told.asked) == 80
    told.asked.clear()
    assert known_by(asked) == set() and len(told.asked) == 10, "one in eight, whatever the kernel says"
    becomes(proc, 1003, "/usr/bin/claude")
    told.said = {1003}
    proc.add(1100)
    assert known_by(asked) == {1003, 1100}


@pytest.mark.parametrize("began", [set(), None])
def test_what_the_kernel_does_not_tell_is_found_all_the_same(
    proc: FakeProc, monkeypatch: pytest.MonkeyPatch, began: set[int] | None
) -> None:
    told = Told(monkeypatch, began)
    proc.add(1003, exe="/usr/bin/foreign")
    asked = real(proc)
    assert known_by(asked) == set()
    becomes(proc, 1003, "/usr/bin/claude")
    walks = next(n for n in range(1, 99) if known_by(asked) == {1003})
    assert walks <= (programs.TURNS if told.said is not None else 1)


def test_an_old_interpreter_that_becomes_a_known_program_is_seen_at_once(tmp_path: Path) -> None:
    exe = tmp_path / "claude"
    shutil.copy(shutil.which("cat") or "/usr/bin/cat", exe)
    code = "import os, sys; os.read(0, 1); os.execv(sys.argv[1], ['claude'])"
    with subprocess.Popen([sys.executable, "-c", code, str(exe)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        asked, began = Programs(PROGRAMS), time.monotonic()
        try:
            while child.pid not in asked._kept or not asked._kept[child.pid].is_held:  # an interpreter: it is looked at now and then
                asked.running(fresh=True)
                assert time.monotonic() - began < 60
            assert child.stdin is not None and child.stdout is not None
            child.stdin.write(b"\n answered")
            child.stdin.flush()
            assert child.stdout.read(1) == b" ", "it runs: the kernel has told of its exec"
            assert child.pid in known_by(asked)
        finally:
            child.kill()
