"""From a terminal: start agents, see them, hold them, stop them with proof."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.in_time import code_in_time, is_done
from tests.fakes.terminal import Terminal, open_terminal, until

SLEEP = ("sleep", "1000")


@pytest.fixture
def nobody(state_dir: Path) -> Iterator[Terminal]:
    """A terminal where nothing runs yet."""
    with open_terminal(state_dir) as made:
        yield made


@pytest.fixture
def terminal(nobody: Terminal) -> Terminal:
    """One where a supervisor runs."""
    nobody.serve_forked()
    return nobody


def test_run_prints_the_id_and_fleet_shows_the_agent_running(nobody: Terminal) -> None:
    terminal = nobody
    agent = terminal.run(*SLEEP, options=("--name", "worker", "--limit", "cost=2.50"))
    row = terminal.agent(agent)
    assert (row["state"], row["depth"], row["control_level"], row["name"]) == ("running", 1, "managed", "worker")
    assert row["limits"]["cost_usd"] == 2.5
    assert "worker" in terminal("fleet").out
    assert terminal.processes()


def test_run_and_wait_streams_the_output_harmless_and_ends_with_its_exit_code(terminal: Terminal) -> None:
    said = terminal("run", "--wait", "--", "sh", "-c", "echo one; printf '\\033[2Jtwo\\n'; exit 7")
    assert (said.code, said.out) == (7, "one\n\\e[2Jtwo\n")


@pytest.mark.parametrize("sandbox", ["none", "bubblewrap"])
def test_run_says_that_a_program_cannot_be_executed_and_is_no_success(terminal: Terminal, sandbox: str) -> None:
    for program, words in (("/does/not/exist", "No such file"), ("/etc/passwd", "Permission denied")):
        said = terminal("run", "--sandbox", sandbox, "--", program)
        agent = said.out.strip()
        assert said.code == 1 and f"agent {agent} did not start: cannot run '{program}'" in said.err and words in said.err
        assert terminal.agent(agent)["state"] == "failed"
    for argv in (("sh", "-c", "exit 127"), ("sh", "-c", "echo one; exit 7"), ("sleep", "1000")):  # what ends badly began all the same
        said = terminal("run", "--sandbox", sandbox, "--", *argv)
        assert (said.code, "did not start" in said.err, "not known" in said.err) == (0, False, False), said
    quoted = terminal("run", "--sandbox", sandbox, "--", "sleep 5")
    assert quoted.code == 1 and "without quotes around all of them" in quoted.err and "Errno" not in quoted.err
    missing = terminal("run", "--json", "--", "/does/not/exist")
    assert missing.code == 1 and missing.json["not_begun"].startswith("cannot run '/does/not/exist'")


def test_frozen_agents_do_not_run_and_thawed_ones_do(terminal: Terminal) -> None:
    agent = terminal.run("sh", "-c", "while :; do date +%N > tick; sleep 0.05; done")
    assert terminal("freeze", agent, "--reason", "look").code == 0
    assert until(lambda: terminal.agent(agent)["state"] == "frozen")
    assert terminal.agent(agent)["causes"] == ["operator"]
    assert terminal("thaw", agent).code == 0
    assert until(lambda: terminal.agent(agent)["state"] == "running")


def test_kill_stops_one_agent_with_a_receipt_and_leaves_the_other(terminal: Terminal) -> None:
    one, other = terminal.run(*SLEEP), terminal.run(*SLEEP)
    said = terminal("kill", one, "--reason", "this one", "--json")
    receipt = said.json
    assert (code_in_time(receipt), receipt["verified_zero"], receipt["survivors"]) == (0, True, [])
    assert said.code == receipt["exit_code"]
    assert [(t["agent_id"], t["outcome"]) for t in receipt["targets"]] == [(one, "proven_zero")]
    assert until(lambda: terminal.agent(one)["state"] == "killed")
    assert terminal.agent(other)["state"] == "running" and terminal.processes()


def test_panic_kills_everything_and_the_kernel_agrees(terminal: Terminal) -> None:
    agents = {terminal.run("sh", "-c", "setsid sleep 1000 & (sleep 1000 &) ; sleep 1000") for _ in range(3)}
    said = terminal("panic", "--reason", "test", "--json")
    receipt = said.json
    assert terminal.processes() == []
    assert code_in_time(receipt) == 0, said
    assert receipt["verified_zero"] and receipt["complete"] and {t["agent_id"] for t in receipt["targets"]} == agents
    assert [s["name"] for s in receipt["steps"]] == ["latch", "refuse", "signal", "zero", "second_look", "rotate", "remote", "evidence"]
    assert {s["name"]: s["status"] for s in receipt["steps"]}["remote"] == "skipped"
    # Killed: nothing starts, reads stay up.
    refused = terminal("run", "--", "true")
    assert refused.code == 4 and "stopped" in refused.err
    assert terminal("fleet", "--json").json["killed"] is True
    assert "EVERYTHING STOPPED" in terminal("status").out
    # The receipt can be read again.
    assert terminal("receipt", "show", receipt["kill_id"], "--json").json["verified_zero"] is True
    assert receipt["kill_id"] in terminal("receipt", "list").out
    # The way back takes a reason and a person, and restores nothing.
    assert terminal("rearm").code == 2
    assert terminal("rearm", "--reason", "over").code == 4
    assert terminal.person("rearm", "--reason", "over", answers=[("Type the id", receipt["kill_id"])]).code == 0
    assert terminal("fleet", "--json").json["killed"] is False
    assert terminal.processes() == []
    assert terminal("run", "--wait", "--", "true").code == 0


def test_panic_reads_well(terminal: Terminal) -> None:
    terminal.run(*SLEEP)
    said = terminal("panic", "--reason", "because \x1b[31m")
    assert is_done(said.code, said.out) and said.out.startswith("All processes of 1 agent are dead.")
    assert "because \\e[31m" in said.out and "\x1b" not in said.out + said.err
    assert "confirmed dead" in said.out and "second_look" in said.out


@pytest.mark.fault
def test_panic_kills_while_the_supervisor_is_stopped_and_says_what_is_unknown(terminal: Terminal) -> None:
    terminal.run(*SLEEP)
    [supervisor] = terminal.supervisors
    os.kill(supervisor, signal.SIGSTOP)
    try:
        said = terminal("panic", "--reason", "hung", "--json")
        assert terminal.processes() == []
    finally:
        os.kill(supervisor, signal.SIGCONT)
    steps = {s["name"]: s["status"] for s in said.json["steps"]}
    assert code_in_time(said.json) == 7 and said.json["verified_zero"] is True
    assert (steps["zero"], steps["second_look"], steps["rotate"], steps["evidence"]) == ("ok", "ok", "unknown", "unknown")


@pytest.mark.fault
def test_panic_kills_with_supervisor_and_guard_dead_and_then_finishes(terminal: Terminal) -> None:
    terminal.run(*SLEEP)
    for pid in (*terminal.supervisors, *terminal.guards):
        os.kill(pid, signal.SIGKILL)
    assert until(lambda: not any(Path(f"/proc/{p}/exe").exists() for p in (*terminal.supervisors, *terminal.guards)))
    said = terminal("panic", "--reason", "all dead", "--json")
    assert terminal.processes() == []
    assert said.json["verified_zero"] is True and [t["outcome"] for t in said.json["targets"]] == ["proven_zero"]
    assert said.code == 8 and said.json["connections_state"] == "not recorded", "no guard looked at its connections"
    assert code_in_time(said.json) in (0, 7), said  # 0 when the supervisor it started finished in time
    assert terminal("run", "--", "true").code == 4


@pytest.mark.fault
def test_the_kill_survives_a_restart_of_everything(terminal: Terminal) -> None:
    terminal.run(*SLEEP)
    said = terminal("panic", "--reason", "stay down")
    assert is_done(said.code, said.out), said
    for pid in (*terminal.supervisors, *terminal.guards):
        os.kill(pid, signal.SIGKILL)
    said = terminal("run", "--", *SLEEP)  # starts a new pair
    assert said.code == 4 and "stopped" in said.err
    assert terminal.processes() == []


def test_ctrl_c_leaves_the_agent_running_and_says_so(terminal: Terminal) -> None:
    waiting = terminal.started("run", "--wait", "--", "sh", "-c", "echo up; exec sleep 1000")
    try:
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == b"up\n", waiting.communicate(timeout=90)
        assert until(lambda: bool(terminal.processes()))
        waiting.send_signal(signal.SIGINT)
        _, err = waiting.communicate(timeout=90)
    finally:
        if waiting.poll() is None:
            waiting.kill()
            waiting.communicate()
    assert waiting.returncode == 130 and b"still runs; stop it with: watchfloor kill" in err and b"Traceback" not in err
    assert terminal.processes()


def test_without_a_supervisor_the_guard_freezes_everything_and_it_is_said_once_the_kernel_says_so(terminal: Terminal) -> None:
    agents = [terminal.run("sh", "-c", "sleep 1000 & sleep 1000") for _ in range(2)]
    held = terminal.processes()
    for pid in terminal.supervisors:  # it is named by its own answer
        os.kill(pid, signal.SIGKILL)
    assert until(lambda: terminal("fleet").code == 6)
    said = terminal("freeze", "--all")
    # Two, and the canary of the armed light where the supervisor died while it was out.
    frozen = re.search(r"the guard has frozen ([23]) agents", said.out)
    assert said.code == 0 and frozen is not None, said
    tree = Path(f"/sys/fs/cgroup/unified/watchfloor-{terminal.places.instance_id}/agents")
    for agent in agents:
        [leaf] = tree.glob(f"{agent}-*")
        assert "frozen 1" in (leaf / "cgroup.events").read_text()
    assert len(held) >= 4 and terminal.processes() == held
