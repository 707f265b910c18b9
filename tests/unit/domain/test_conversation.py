"""Started programs as command lines, the bounds of what is said to them, and why nobody can talk to one now."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.domain.agent import Agent, AgentId, AgentState, ContextId, SandboxKind
from console.domain.conversation import (
    CHANNEL,
    ENDING,
    GATE,
    HOOKED,
    MOST_MESSAGE,
    ONCE,
    POLICY,
    SERVERS,
    SHELLS,
    TALKING,
    Program,
    checked_model,
    checked_text,
    command_line,
    started_as,
    what_helps,
    why_silent,
)
from console.domain.errors import UsageProblem
from console.domain.ids import ControlLevel
from tests.fakes.instance import ROOT

ARGV = command_line(Program.CODEX, "do $(this) \"'", "/usr/bin/codex", ("app-server", "-c", "x=1"), talks=True)
HELD = (ControlLevel.MANAGED, SandboxKind.NONE, 0.0)
AGENT = Agent(AgentId("a-1"), "codex", None, AgentId("a-1"), 1, ContextId("c"), *HELD, state=AgentState.RUNNING, argv=ARGV)


def test_a_command_line_says_all_about_its_program_and_no_other_is_taken_for_one() -> None:
    started = started_as(ARGV)
    assert started is not None and started.talks
    assert (started.program, started.prompt, started.path) == (Program.CODEX, "do $(this) \"'", "/usr/bin/codex")
    assert started.words == ("app-server", "-c", "x=1")
    once = started_as(command_line(Program.CLAUDE_CODE, "p", "/c", (), talks=False))
    assert once is not None and not once.talks
    for other in (("python3", "x"), ("/bin/sh", "-c", "true"), (*ARGV[:3], "other", *ARGV[4:]), ARGV[:5], ()):
        assert started_as(other) is None


def test_the_shell_that_becomes_it_keeps_it_in_its_workspace_quiet_and_hands_every_word_on(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text(
        '#!/bin/sh\nprintf "%s\\n" "$@" "$TMPDIR" "$CLAUDE_CONFIG_DIR" "$DISABLE_TELEMETRY" "$DISABLE_AUTOUPDATER"; head -n1\n'
    )
    program.chmod(0o755)
    door = tmp_path / "door"
    door.mkdir()
    os.mkfifo(door / CHANNEL)
    os.mkfifo(door / ENDING)
    held = os.open(door / CHANNEL, os.O_RDWR)
    (door / HOOKED).write_text("x=1\n")
    (door / SERVERS).write_text("y=2\n")
    os.write(held, b"hello\n")
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "WATCHFLOOR_AGENT_SOCKET": str(door / "agent.sock"), "DISABLE_TELEMETRY": "0"}
    own = f"{tmp_path}/.watchfloor"
    for talks, said in ((True, "hello\n"), (False, "$(id) 'x'")):
        argv = command_line(Program.CODEX, "$(id) 'x'", str(program), ("-a", "b c"), talks=talks)
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout == f"-a\nb c\n-c\nx=1\n-c\ny=2\n{own}/tmp\n{own}/claude\n0\n1\n{said}", done.stderr
    os.close(held)
    assert (tmp_path / ".watchfloor" / "codex").is_dir()


def test_opencode_starts_with_settings_and_a_cache_that_are_new_or_not_at_all(tmp_path: Path) -> None:
    program, door = tmp_path / "program", tmp_path / "door"
    program.write_text(
        '#!/bin/sh\nprintf "%s\\n" "$XDG_CONFIG_HOME" "$XDG_CACHE_HOME" "$XDG_DATA_HOME" "$XDG_STATE_HOME"; ls "$XDG_CONFIG_HOME"\n'
    )
    program.chmod(0o755)
    door.mkdir()
    (door / HOOKED).write_text("{}\n")
    (door / SERVERS).write_text("\n")
    left = tmp_path / ".watchfloor" / "opencode" / "CACHE" / "opencode" / "models.json"
    left.parent.mkdir(parents=True)
    left.write_text("what an earlier program left")
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "WATCHFLOOR_AGENT_SOCKET": str(door / "agent.sock")}
    argv = command_line(Program.OPENCODE, "p", str(program), ("{}", "run"), talks=False)
    told = [subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines() for _ in range(2)]
    for config, cache, data, state, *inside in told:
        assert Path(cache).parent == Path(config) and inside == ["opencode"], "the cache is not there yet, and the settings are empty"
        assert [data, state] == [f"{tmp_path}/.watchfloor/opencode/{name}" for name in ("DATA", "STATE")]
    assert told[0][0] != told[1][0]

    (tmp_path / "bin").mkdir()
    fails = tmp_path / "bin" / "mktemp"
    fails.write_text("#!/bin/sh\nexit 1\n")
    fails.chmod(0o755)
    done = subprocess.run(
        argv, env=env | {"PATH": f"{fails.parent}:/usr/bin:/bin"}, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (1, ""), "without a new folder it does not start"


def test_gemini_starts_behind_its_gate_with_our_policy_and_a_home_that_is_new(tmp_path: Path) -> None:
    door = tmp_path / "door"
    door.mkdir()
    (door / HOOKED).write_text("{}\n")
    (door / SERVERS).write_text("\n")
    told = (
        "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['GEMINI_CLI_HOME'], os.environ['GEMINI_CLI_TRUST_WORKSPACE']]))"
    )
    (door / GATE).write_text(told)
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "WATCHFLOOR_AGENT_SOCKET": str(door / "agent.sock"), "GEMINI_SYSTEM_MD": "x"}
    argv = command_line(Program.GEMINI, "p", "/bin/true", ("once", "--acp"), talks=False)
    homes = set()
    for _ in range(2):
        (words, home, trust) = json.loads(subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=True).stdout)
        assert (words, trust) == (["once", "/bin/true", "--acp", "--admin-policy", str(door / POLICY)], "false")
        assert (Path(home) / ".gemini" / "tmp").resolve() == tmp_path / ".gemini" / "tmp"
        assert sorted(file.name for file in (Path(home) / ".gemini").iterdir()) == ["settings.json", "tmp"]
        homes.add(home)
    assert len(homes) == 2
    (door / HOOKED).unlink()
    assert subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False).returncode == 1


def test_a_prompt_stays_one_word_whatever_it_holds() -> None:
    assert ARGV[2].count("do $(this)") == 0 and ARGV[4] == "do $(this) \"'"


@pytest.mark.parametrize("text", ["", " \n", "x" * (MOST_MESSAGE + 1), "a\0b", "a\ud800"])
def test_what_cannot_be_said_is_refused_with_why(text: str) -> None:
    with pytest.raises(UsageProblem):
        checked_text(text)


@pytest.mark.parametrize("name", ["--dangerously-skip-permissions", "a b", "a\n", "x" * 101, "é", "$(id)"])
def test_a_models_name_is_no_option_and_no_command(name: str) -> None:
    with pytest.raises(UsageProblem):
        checked_model(name)
    assert checked_model("claude-sonnet-4-5") and checked_model("us.anthropic/x:1[1m]") and checked_model("") == ""


CASES: list[tuple[dict[str, Any], str]] = [
    ({}, ""),
    ({"state": AgentState.WAITING}, ""),
    ({"argv": ("sleep", "1")}, "not started as a program"),
    ({"argv": command_line(Program.CODEX, "p", "/c", (), talks=False)}, "--once"),
    ({"state": AgentState.KILLED, "state_reason": "why"}, "it is killed (why)"),
    ({"state": AgentState.HALTED}, "it is halted"),
    ({"state": AgentState.ENDED}, "it is ended"),
    ({"state": AgentState.ALIVE_AFTER_KILL}, "not confirmed"),
    ({"state": AgentState.OVER_BUDGET, "state_reason": "agent limit cost_usd"}, "over its budget (agent limit cost_usd)"),
    ({"state": AgentState.FROZEN, "causes": ("operator",)}, "frozen (operator)"),
    ({"causes": ("lease",)}, "frozen (lease)"),
    ({"isolated": "by me"}, "it is isolated (by me)"),
    ({"state": AgentState.STARTING}, "not started yet"),
]


@pytest.mark.parametrize(("change", "why"), CASES)
def test_who_cannot_be_talked_to_and_why(change: dict[str, Any], why: str) -> None:
    said = why_silent(replace(AGENT, **change), stopping=False, over_budget="")
    assert why in said and bool(said) == bool(why)


@pytest.mark.parametrize(
    ("change", "verb"),
    [
        ({"argv": ("sleep", "1")}, "watchfloor run --agent"),
        ({"argv": command_line(Program.CODEX, "p", "/c", (), talks=False)}, "without --once"),
        ({"state": AgentState.KILLED}, "run --again"),
        ({"state": AgentState.OVER_BUDGET}, "watchfloor budget set NAME=VALUE --agent a-1"),
        ({"state": AgentState.FROZEN, "causes": ("operator",)}, "watchfloor thaw a-1"),
        ({"state": AgentState.FROZEN, "causes": ("lease",)}, "watchfloor agent show a-1"),
        ({"isolated": "by me"}, "watchfloor reconnect a-1"),
    ],
)
def test_what_helps_is_the_verb_that_takes_the_reason_away(change: dict[str, Any], verb: str) -> None:
    assert verb in what_helps(replace(AGENT, **change), over_budget=False)
    assert "budget set" in what_helps(AGENT, over_budget=True)


def test_a_stop_or_a_cap_that_is_not_shown_yet_silences_too() -> None:
    assert "being killed" in why_silent(AGENT, stopping=True, over_budget="")
    assert "over its budget (day limit cost_usd)" in why_silent(AGENT, stopping=False, over_budget="day limit cost_usd")


def test_it_reads_end_of_file_when_that_is_told_and_not_when_whoever_talks_goes(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nwhile read -r x; do echo $x; done\necho end\nexit 7\n")
    program.chmod(0o755)
    for name in (CHANNEL, ENDING):
        os.mkfifo(tmp_path / name)
    held, ending = (os.open(tmp_path / name, os.O_RDWR) for name in (CHANNEL, ENDING))
    (tmp_path / HOOKED).write_text("x=1\n")
    (tmp_path / SERVERS).write_text("\n")
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "WATCHFLOOR_AGENT_SOCKET": str(tmp_path / "agent.sock")}
    argv = command_line(Program.CODEX, "p", str(program), (), talks=True)
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout is not None
        for words in ("one", "two"):
            os.write(held, f"{words}\n".encode())
            assert shell.stdout.readline() == f"{words}\n"
            os.close(held)  # a supervisor that restarts
            with pytest.raises(subprocess.TimeoutExpired):
                shell.wait(0.2)
            held = os.open(tmp_path / CHANNEL, os.O_RDWR)
        os.write(ending, b"\n")
        os.close(held)
        try:
            assert shell.communicate(timeout=60)[0] == "end\n" and shell.returncode == 7
        finally:
            shell.kill()
    # Told before it began, and nobody holds the channel: it ends, and waits for nobody.
    os.write(ending, b"\n")
    assert subprocess.run(argv, env=env, capture_output=True, timeout=60, check=False).stdout == b"end\n"
    os.close(ending)


@pytest.mark.parametrize(("program", "words"), [(Program.CLAUDE_CODE, ()), (Program.CODEX, ()), (Program.GEMINI, ("x",))])
def test_git_commits_nothing_that_a_started_program_keeps_in_its_workspace(
    tmp_path: Path, program: Program, words: tuple[str, ...]
) -> None:
    beside, work, tool = tmp_path / "beside", tmp_path / "work", tmp_path / "tool"
    beside.mkdir()
    work.mkdir()
    for name in (HOOKED, SERVERS, POLICY):
        (beside / name).write_text("{}\n")
    (beside / GATE).write_text("import subprocess, sys\nsubprocess.run([sys.argv[2]], check=True)\n")
    said = [
        "#!/bin/sh",
        'mkdir -p "$CLAUDE_CONFIG_DIR/sessions"; echo k > "$CLAUDE_CONFIG_DIR/sessions/6.key"',
        'echo t > "${GEMINI_CLI_HOME:-$CODEX_HOME}/said"',
        '[ -z "$GEMINI_CLI_HOME" ] || echo c > "$HOME/.gemini/tmp/chat"',
        "echo 1 > a.py; git init -q; git add -A",
    ]
    tool.write_text("\n".join(said) + "\n")
    tool.chmod(0o755)
    env = {"HOME": str(work), "PATH": "/usr/bin:/bin", "WATCHFLOOR_AGENT_SOCKET": str(beside / "agent.sock")}
    argv = command_line(program, "hello", str(tool), words, talks=False)
    subprocess.run(argv, cwd=work, env=env, check=True, timeout=60)
    added = subprocess.run(["git", "ls-files"], cwd=work, env=env, capture_output=True, text=True, check=True)
    assert added.stdout.split() == ["a.py"]
    assert (work / ".watchfloor" / "claude" / "sessions" / "6.key").exists()


def test_a_program_that_an_earlier_version_started_is_still_talked_to_after_an_upgrade() -> None:
    earlier = json.loads((ROOT / "tests" / "data" / "started" / "earlier_shells.json").read_text())
    for name, talks in (("talking", True), ("once", False)):
        started = started_as((*ARGV[:2], earlier[name], *ARGV[3:]))
        assert started is not None and (started.program, started.talks, started.words) == (Program.CODEX, talks, ARGV[6:])
        assert started_as((*ARGV[:2], earlier[name] + " ", *ARGV[3:])) is None, "no agent makes one up"


def test_whoever_changes_the_text_that_starts_a_program_adds_it_to_those_that_are_known() -> None:
    assert SHELLS[hashlib.sha256(TALKING.encode()).hexdigest()] and not SHELLS[hashlib.sha256(ONCE.encode()).hexdigest()]
