"""Suspects: found among what the program at the other end started since; ended only when an operator names them, each looked at again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from console.domain.errors import NotFound, UsageProblem
from console.domain.kill import Connection, Outcome, Receipt, Suspect, Target
from console.killswitch.helpers.adopt import origin_of
from console.killswitch.kernel import processes
from console.killswitch.kernel.processes import Handle, ticks_now
from console.killswitch.kill import suspects as module
from console.killswitch.kill.records import Kept, Record
from console.killswitch.kill.snapshot import Process, find_process
from console.killswitch.kill.suspects import Origin, beside, chosen, end, find, why_not
from tests.fakes.guard_world import until

Start = Callable[..., subprocess.Popen[bytes]]
HOST = "import subprocess, sys\nfor line in sys.stdin:\n    print(subprocess.Popen(line.split()).pid, flush=True)\n"


@pytest.fixture
def start() -> Iterator[Start]:
    made: list[subprocess.Popen[bytes]] = []

    def run(*argv: str, **more: object) -> subprocess.Popen[bytes]:
        made.append(subprocess.Popen(argv, **more))  # type: ignore[call-overload]
        until(lambda: processes.command_line(made[-1].pid).startswith(argv[0]), "it runs")
        return made[-1]

    yield run
    for process in made:
        process.kill()
        process.wait()


@pytest.fixture
def work() -> str:
    """An argument that no other process has."""
    return f"60{os.getpid():06}"


def kept(words: str = "", folders: str = "", since: int = 0, uids: int | None = None) -> tuple[Record, Kept]:
    """An agent that is connected to this very process."""
    record = Record("a-1", 0, 0, 0)
    record.words, record.folders = {words}, {folders} - {""}
    record.uids = {os.geteuid() if uids is None else uids}
    here = find_process(os.getpid())
    assert here is not None
    return record, Kept("tcp", "", "", here, 0, "", since, 0.0)


def found(*pairs: tuple[Record, Kept], spared: tuple[int, ...] = ()) -> dict[int, Suspect]:
    return {one.pid: one for one in find(pairs, spared)}


def test_an_argument_of_the_agent_and_its_marker_preselect_and_a_folder_alone_does_not(start: Start, work: str, tmp_path: Path) -> None:
    by_words = start("/bin/sleep", work)
    marked = start("/bin/sleep", "600", env={"WATCHFLOOR_AGENT_ID": "a-1"})
    in_folder = start("/bin/sleep", "600", cwd=tmp_path)
    other = start("/bin/sleep", "600")
    seen = found(kept(f"sh -c 'sleep {work}; true'", str(tmp_path.parent)))
    assert {pid: (one.by, one.preselected) for pid, one in seen.items() if pid != other.pid} == {
        by_words.pid: ("arguments", True),
        marked.pid: ("marker", True),
        in_folder.pid: ("working folder", False),
    }
    assert other.pid not in seen
    one = seen[by_words.pid]
    assert (one.exe, one.uid, one.command, one.peer_pid) == ("/usr/bin/sleep", os.geteuid(), f"/bin/sleep {work}", os.getpid())
    assert f"process {os.getpid()}" in one.why


def test_a_command_of_an_operator_that_names_the_agent_is_none_unless_it_carries_the_marker(start: Start, tmp_path: Path) -> None:
    waits = ("-c", "import time; time.sleep(600)")
    asked = start(sys.executable, *waits, "/usr/bin/watchfloor", "kill", "a-1", cwd=tmp_path)
    shell = start("/bin/sh", "-c", "read x; watchfloor kill a-1", cwd=tmp_path, stdin=subprocess.PIPE)
    named = start(sys.executable, *waits, "a-1")
    marked = start(sys.executable, *waits, "/usr/bin/watchfloor", "kill", "a-1", env={"WATCHFLOOR_AGENT_ID": "a-1"})
    seen = found(kept(folders=str(tmp_path)))
    assert shell.stdin is not None
    shell.stdin.close()
    assert not {asked.pid, shell.pid} & seen.keys() and {named.pid, marked.pid} <= seen.keys()


def test_what_ran_before_the_connection_is_none(start: Start, work: str) -> None:
    before = start("/bin/sleep", work)
    assert before.pid not in found(kept(work, since=ticks_now() + 1000))


def test_what_no_peer_started_is_none(start: Start, work: str) -> None:
    one = start("/bin/sleep", work)
    record, there = kept(work)
    assert there.peer is not None
    elsewhere = start("/bin/sleep", "600", start_new_session=True)
    peer = find_process(elsewhere.pid)
    assert one.pid not in found((record, replace(there, peer=peer)))


def test_a_process_of_the_same_terminal_is_none_and_one_that_lost_its_parent_there_is_one(start: Start, work: str) -> None:
    # A session of its own: that of the tests may be the one of the first process, which says nothing.
    host = start(sys.executable, "-c", HOST, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)

    def hosted(command: str) -> int:
        assert host.stdin is not None and host.stdout is not None
        host.stdin.write(command.encode() + b"\n")
        host.stdin.flush()
        return int(host.stdout.readline())

    peer, beside = find_process(hosted("/bin/sleep 600")), hosted(f"/bin/sleep {work}")
    orphan = 0
    try:
        until(lambda: _running(f"/bin/sleep {work}"), "it runs")
        record, there = kept(work, since=processes.start_ticks(beside) or 0)
        assert beside not in found((record, replace(there, peer=peer))), "the host started it, in the peer's session"
        hosted(f"/bin/sh -c /bin/sleep${{IFS}}{work}1&")
        until(lambda: _running(f"/bin/sleep {work}1"), "it runs")
        [orphan] = _running(f"/bin/sleep {work}1")
        until(lambda: processes.parent(orphan) != host.pid, "its parent has ended")
        if processes.parent(orphan) != 1:
            pytest.skip("another process than the first takes orphans here")
        record.words = {f"{work}1"}
        assert orphan in found((record, replace(there, peer=peer)))
    finally:
        for pid in (peer.pid if peer is not None else 0, beside, orphan):
            if pid:
                os.kill(pid, signal.SIGKILL)  # started here, and nobody has waited for it
        until(lambda: not orphan or not processes.is_alive(orphan), "it ended")
        host.communicate()


def test_what_a_suspect_started_is_one_and_so_is_what_lost_its_parent_in_a_session_of_its_own(start: Start, work: str) -> None:
    above = start("/bin/sh", "-c", f"/bin/sleep 61{work[4:]} & : {work}; wait")
    until(lambda: _running(f"/bin/sleep 61{work[4:]}"), "it runs")
    [below] = _running(f"/bin/sleep 61{work[4:]}")
    subprocess.run(["/bin/sh", "-c", f"/usr/bin/setsid /bin/sleep {work}2 &"], check=True)
    until(lambda: _running(f"/bin/sleep {work}2"), "it runs")
    [orphan] = _running(f"/bin/sleep {work}2")
    try:
        record, there = kept(since=processes.start_ticks(above.pid) or 0)
        record.words = {work, f"{work}2"}
        seen = found((record, there))
        assert (seen[below].by, seen[below].preselected) == ("arguments", True)
        assert f"process {above.pid}, a suspect, started it" in seen[below].why
        if processes.parent(orphan) == 1:  # else another process than the first takes orphans here
            assert (seen[orphan].by, seen[orphan].preselected) == ("arguments", False) and "may have started" in seen[orphan].why
            record.words = {work}
            assert orphan not in found((record, there)), "an account alone says nothing"
    finally:
        for pid in (below, orphan):
            os.kill(pid, signal.SIGKILL)  # started here, and nobody has waited for it


def _running(command: str) -> list[int]:
    return [pid for pid in processes.every_pid() if processes.command_line(pid) == command and processes.is_alive(pid)]


def test_a_peer_whose_number_is_another_s_by_now_started_nothing(start: Start, work: str) -> None:
    one = start("/bin/sleep", work)
    record, there = kept(work)
    assert there.peer is not None
    assert one.pid not in found((record, replace(there, peer=replace(there.peer, start_ticks=1))))


def test_never_the_caller_nor_a_peer_nor_a_target(start: Start, work: str) -> None:
    one = start("/bin/sleep", work)
    assert found(kept(work), spared=(one.pid,)) == {}
    record, there = kept(work)
    ticks = processes.start_ticks(one.pid)
    assert ticks is not None
    record.pids = {one.pid: ticks}
    assert found((record, there)) == {}
    assert one.pid not in found(kept(work), (kept("")[0], replace(there, peer=find_process(one.pid))))


def test_ordinary_words_tell_nothing(start: Start) -> None:
    """Programs, options and short arguments: half of all processes have them."""
    one = start("/bin/sleep", "600")
    assert one.pid not in found(kept("/bin/sleep 600 --verbose --color=always /tmp"))
    assert one.pid not in found(kept(folders="/"))


def test_another_account_is_listed_and_not_preselected(start: Start, work: str) -> None:
    one = start("/bin/sleep", work)
    suspect = found(kept(work, uids=54321))[one.pid]
    assert not suspect.preselected and "another account" in suspect.why


def test_no_peer_no_suspects() -> None:
    record, there = kept("x")
    assert find([(record, replace(there, peer=None))], ()) == () and find([], ()) == ()


# --- ending them


def receipt(*suspects: Suspect, peer: Process | None = None, account: tuple[int, ...] = (os.geteuid(),)) -> Receipt:
    connections = (Connection("a-1", "tcp", "", "", peer.pid, peer.start_ticks, peer.name, 0, ""),) if peer else ()
    targets = (Target("a-1", "managed", Outcome.PROVEN_ZERO, 1.0, {"accounts": list(account)}),)
    return Receipt("k-1", "00c0ffee", "all", "", "", 0.0, targets=targets, connections=connections, suspects=suspects)


def suspect(process: subprocess.Popen[bytes], **more: object) -> Suspect:
    there = find_process(process.pid)
    assert there is not None
    made = Suspect("a-1", there.pid, there.start_ticks, there.program, there.uid, "", "", "arguments", True, os.getpid())
    return replace(made, **more)  # type: ignore[arg-type]


ACCOUNT = (os.geteuid(),)


def test_the_preselected_are_meant_unless_some_are_named(start: Start) -> None:
    one, other = suspect(start("/bin/sleep", "600")), suspect(start("/bin/sleep", "600"), by="working folder", preselected=False)
    paper = receipt(one, other)
    assert chosen(paper, ()) == [one]
    assert chosen(paper, (other.pid, other.pid)) == [other]
    with pytest.raises(UsageProblem, match="no suspect of kill k-1: nothing was killed"):
        chosen(paper, (one.pid, os.getpid()))
    with pytest.raises(NotFound):
        chosen(receipt(), ())


def test_a_suspect_is_killed_and_seen_dead(start: Start) -> None:
    process = start("/bin/sleep", "600")
    one = suspect(process)
    [done] = end(receipt(one), [one], ())
    assert (done.done, done.words) == (True, "killed") and process.wait() == -9


def test_a_number_that_is_another_s_by_now_is_a_clear_answer_and_nothing_is_sent(start: Start) -> None:
    process = start("/bin/sleep", "600")
    one = suspect(process, start_ticks=1)
    [done] = end(receipt(one), [one], ())
    assert not done.done and "belongs to another process by now" in done.words and process.poll() is None


def test_one_that_has_ended_is_done(start: Start) -> None:
    process = start("/bin/sleep", "600")
    one = suspect(process)
    process.kill()
    process.wait()
    [done] = end(receipt(one), [one], ())
    assert (done.done, done.words) == (True, "it had ended")


@pytest.mark.parametrize(
    ("change", "spared", "account", "why"),
    [
        ({}, True, ACCOUNT, "the one who asked"),
        ({"exe": "/usr/bin/other"}, False, ACCOUNT, "another program by now"),
        ({"uid": 54321}, False, (54321,), "another account"),
        ({}, False, (54321,), "another account"),
    ],
)
def test_what_is_never_killed(start: Start, change: dict[str, object], spared: bool, account: tuple[int, ...], why: str) -> None:
    process = start("/bin/sleep", "600")
    one = suspect(process, **change)
    [done] = end(receipt(one, account=account), [one], (process.pid,) if spared else ())
    assert not done.done and why in done.words and process.poll() is None


def test_the_other_end_of_a_connection_is_never_killed_nor_process_1(start: Start) -> None:
    process = start("/bin/sleep", "600")
    one = suspect(process)
    [done] = end(receipt(one, peer=find_process(process.pid)), [one], ())
    assert not done.done and "other end of a connection" in done.words and process.poll() is None
    assert why_not(replace(one, pid=1), (), (), ACCOUNT)


def test_one_that_does_not_die_is_not_called_killed(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "END_S", 0.05)
    monkeypatch.setattr(Handle, "send", lambda *_: "sent")
    process = start(sys.executable, "-c", HOST, stdin=subprocess.PIPE)
    one = suspect(process)
    [done] = end(receipt(one), [one], ())
    assert not done.done and done.words == "still alive after SIGKILL"
    assert process.stdin is not None
    process.stdin.close()


@pytest.mark.parametrize("word", ["bg-spare", "claude", "--bg-spare", "/dev/null"])
def test_what_other_sessions_of_the_program_have_as_well_preselects_nobody(start: Start, word: str) -> None:
    """Every session of a daemon is one of its spares at first, with the same words."""
    one = start("/usr/bin/python3", "-c", "import time; time.sleep(600)", word)
    assert one.pid not in found(kept(f"{word} --other"))


def test_what_started_the_agent_in_the_same_hundredth_of_a_second_was_not_left_outside_by_it(sleeper: tuple[int, int]) -> None:
    pid, ticks = sleeper
    origin = replace(origin_of(pid) or Origin(-1, 0, "", "", 1, ""), reaper=os.getpid())
    assert origin.uid == os.geteuid()
    later, earlier = (beside("a", (first, ticks), origin, ()) for first in (pid - 1, pid + 1))
    assert pid in {one.pid for one in later} and pid not in {one.pid for one in earlier}
