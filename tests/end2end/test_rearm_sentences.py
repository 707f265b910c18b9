"""Un-killing needs everything: a person or a proof, a reason, a look at what was killed; and then nothing comes back by itself."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from console.api.rearm import RearmProof
from console.domain.errors import Conflict, ConsoleError, Denied
from console.killswitch.client.guard_client import GuardClient
from tests.fakes.instance import Instance, files_below
from tests.fakes.instance import until as until_true
from tests.fakes.terminal import Terminal, open_terminal, until

SLEEP = ("sleep", "1000")
WORDS = "correct horse battery"
OTHER = "another good passphrase"


@pytest.fixture
def terminal(state_dir: Path) -> Iterator[Terminal]:
    with open_terminal(state_dir) as made:
        made.serve_forked()
        yield made


def panic(terminal: Terminal, reason: str = "test") -> str:
    said = terminal("panic", "--reason", reason, "--json")
    assert said.json["verified_zero"] and said.json["complete"], said
    return str(said.json["kill_id"])


def records(terminal: Terminal, kind: str) -> list[dict[str, object]]:
    said = terminal("audit", "tail", "--rows", "200", "--json")
    return [row for row in said.json["records"] if row["kind"] == kind]


def with_passphrase(terminal: Terminal, *argv: str, words: str = WORDS, old: str = "") -> tuple[int, str]:
    """Through descriptors, as automation does."""
    said = terminal(*argv, "--passphrase-fd", "3", *(["--old-fd", "4"] if old else []), lines=[words, old] if old else [words])
    return said.code, said.out + said.err


def test_without_a_passphrase_only_a_person_at_a_terminal_rearms_and_agents_come_back_one_by_one(terminal: Terminal) -> None:
    one = terminal.run(*SLEEP, options=("--name", "first \x1b[31m", "--limit", "cost=2.50"))
    other = terminal.run(*SLEEP)
    kill = panic(terminal, "they wrote to production \x1b[31m")
    # A program is refused, with what to do, whatever it says of itself.
    for argv in ((), ("--json",), ("--kill-id", kill)):
        said = terminal("rearm", "--reason", "over", *argv)
        assert said.code == 4 and "watchfloor secrets passphrase set" in said.err, said
    assert terminal("rearm", "--reason", "over", input_=kill + "\n").code == 4
    # A person is shown what was killed and why, is refused a wrong id, and told that this is weak.
    for typed in ("yes", ""):
        wrong = terminal.person("rearm", "--reason", "over", answers=[("Type the id", typed)])
        assert wrong.code != 0 and terminal("fleet", "--json").json["killed"], f"{typed!r} is not the id of the kill"
    said = terminal.person("rearm", "--reason", "over", answers=[("Type the id", kill)])
    assert said.code == 0, said
    for words in (
        kill,
        "they wrote to production \\e[31m",
        "All processes of 2 agents are dead.",
        "No passphrase is set",
        f"run --again {one}",
    ):
        assert words in said.out, (words, said.out)
    # Nothing came back by itself; each comes back when a person says so, as it was.
    assert terminal.processes() == []
    again = terminal("run", "--again", one)
    assert again.code == 0, again
    row = terminal.agent(again.out.strip())
    assert (row["name"], row["limits"]["cost_usd"], row["session"]) == ("first \x1b[31m", 2.5, terminal.agent(one)["session"])
    assert terminal.agent(other)["state"] == "killed" and terminal.processes()
    assert terminal("run", "--again", one).code == 1, "it runs again already"
    # The audit says who, from where, how, and what.
    [record] = records(terminal, "kill.rearm")
    text = str(record)
    for words in (kill, "typed id", f"uid {os.getuid()}", "'peer_pid'", "python", "over"):
        assert words in text or words in text.replace('"', "'"), (words, text)
    assert len(records(terminal, "kill.rearm_refused")) >= 1


def test_with_a_passphrase_set_nothing_else_rearms_and_it_is_written_nowhere(terminal: Terminal) -> None:
    terminal.run(*SLEEP)
    assert "No passphrase is set" in terminal("secrets", "passphrase", "status").out
    assert with_passphrase(terminal, "secrets", "passphrase", "set")[0] == 0
    assert with_passphrase(terminal, "secrets", "passphrase", "set", words=OTHER)[0] == 4, "another takes the old one"
    assert with_passphrase(terminal, "secrets", "passphrase", "set", words=OTHER, old="not the old one")[0] == 4
    kill = panic(terminal)
    for argv, answers in (((), [("Passphrase:", kill)]), (("--kill-id", kill), [("Passphrase:", "guessed it")])):
        assert terminal.person("rearm", "--reason", "over", *argv, answers=answers).code == 4
    assert terminal("rearm", "--reason", "over").code == 4
    code, words = with_passphrase(terminal, "rearm", "--reason", "over", words="guessed again")
    assert code == 4 and terminal("fleet", "--json").json["killed"]
    assert until(lambda: with_passphrase(terminal, "rearm", "--reason", "over")[0] == 0), "the wait is over at some time"
    assert terminal("fleet", "--json").json["killed"] is False
    assert with_passphrase(terminal, "secrets", "passphrase", "set", words=OTHER, old=WORDS)[0] == 0
    assert len(records(terminal, "kill.rearm_refused")) >= 2
    assert until(lambda: bool(records(terminal, "guard.rearm_refused"))), "read from the guard's own journal"
    assert '"proof": "passphrase"' in str(records(terminal, "kill.rearm")) or "'passphrase'" in str(records(terminal, "kill.rearm"))
    for folder in (terminal.places.state_dir, terminal.environment["XDG_CONFIG_HOME"]):
        for path, data in files_below(Path(folder)).items():
            assert not any(secret.encode() in data for secret in (WORDS, OTHER, "guessed it", "guessed again")), path
    assert not list((terminal.places.guard_dir).glob("passphrase*"))


def test_operator_keys_rearm_without_a_person_over_exactly_what_is_killed(terminal: Terminal, tmp_path: Path) -> None:
    terminal.run(*SLEEP)
    assert terminal("secrets", "keys", "init", "--quorum", "2").code == 0
    assert with_passphrase(terminal, "secrets", "passphrase", "set")[0] == 0
    # Each key with another person, as docs/how-to/remote-kill.md has it: none of them lies here.
    kept = [Path(shutil.move(key, tmp_path)) for key in sorted(terminal.places.keys_dir.glob("*.key"))]
    panic(terminal)
    assert terminal("rearm", "--reason", "over", "--sign", "--keys", "/nonexistent").code == 4
    assert terminal("rearm", "--reason", "over", "--key", str(kept[0]), "--key", str(kept[0])).code == 4
    said = terminal("rearm", "--reason", "over", "--key", str(kept[0]), "--key", str(kept[1]), "--json")
    assert said.code == 0 and said.json["killed"] is False, said
    assert "signature of" in str(records(terminal, "kill.rearm"))


def test_a_lost_passphrase_is_reset_by_the_owner_at_a_terminal_and_the_receipt_says_so(terminal: Terminal) -> None:
    terminal.run(*SLEEP)
    assert with_passphrase(terminal, "secrets", "passphrase", "set")[0] == 0
    kill = panic(terminal)
    assert terminal("secrets", "passphrase", "reset").code == 4
    for typed in ("reset", ""):
        assert terminal.person("secrets", "passphrase", "reset", answers=[("Type the id", typed)]).code == 4
    said = terminal.person("secrets", "passphrase", "reset", answers=[("Type the id", kill)])
    assert said.code == 0 and "was reset" in said.out, said
    assert until(lambda: "was reset by uid" in terminal("receipt", "show", kill, "--json").out)
    assert terminal.person("rearm", "--reason", "over", answers=[("Type the id", kill)]).code == 0
    assert "reset" in str(records(terminal, "passphrase.reset"))
    assert until(lambda: "True" in str(records(terminal, "guard.unlatch")))  # the guard's journal is folded in a moment later


@pytest.fixture
def it(state_dir: Path) -> Iterator[Instance]:
    with Instance(state_dir) as instance:
        yield instance


def test_a_program_that_claims_to_be_a_person_needs_a_terminal(it: Instance) -> None:
    kill = it.api.activate("test")
    for proof in (RearmProof(), RearmProof(via="terminal"), RearmProof(nonce="0" * 32)):
        with pytest.raises(Denied):
            it.api.rearm("over", kill.kill_id, proof)
    with pytest.raises(Conflict, match="Another kill came"):
        it.api.rearm("over", kill.kill_id, RearmProof(via="console", generation=0))
    assert it.api.fleet().killed


def test_no_token_of_before_counts_after_a_rearm(it: Instance) -> None:
    agent = it.python("print(os.environ['AGENT_AUTH_TOKEN'], flush=True); time.sleep(600)")
    token = it.says(agent, ".").split()[0]
    it.api.activate("test")
    it.api.rearm("over")
    import http.client
    import socket

    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(it.places.operator_sock))
        connection = http.client.HTTPConnection("watchfloor")
        connection.sock = sock
        connection.request("GET", "/api/token-check", headers={"Authorization": f"Bearer {token}"})
        assert connection.getresponse().status in (401, 403)


def test_an_agent_does_not_see_where_the_passphrase_is_kept(it: Instance) -> None:
    folder = it.places.passphrase_file.parent
    try:
        agent = it.python(
            f"try: print('SEES', os.listdir({str(folder)!r}), flush=True)\nexcept OSError as e: print('sees nothing', e.errno, flush=True)"
        )
        assert "sees nothing" in it.says(agent, "\n") or "SEES []" in it.output(agent)
    finally:
        assert not folder.exists(), "nothing is made before a passphrase is set"


def is_complete(it: Instance, kill_id: str) -> bool:
    return any(r.kill_id == kill_id and r.complete for r in it.api.receipts().receipts)


def test_one_console_kills_while_another_releases_and_the_kill_wins(it: Instance) -> None:
    """K8: whatever the moment, after the press everything is latched until somebody looks again."""
    guard = GuardClient(it.places.guard_sock, timeout_s=90)
    for round_ in range(3):
        first = it.api.activate(f"round {round_}")
        seen = it.api.rearm_view()
        released: list[str] = []

        def release(kill_id: str = first.kill_id, generation: int = seen.generation, out: list[str] = released) -> None:
            try:
                it.api.rearm("go on", kill_id, RearmProof(via="console", generation=generation))
                out.append("released")
            except ConsoleError as error:
                out.append(error.what)

        console = threading.Thread(target=release)
        console.start()
        threading.Event().wait(0.04 * round_)
        second = guard.press("all", "the other console", "b", timeout_s=90)
        console.join(90)
        status = guard.status()
        assert released and status["latched"] and second in status["kills"], (released, status)
        until_true(partial(is_complete, it, second))
        assert it.api.fleet().killed
        with pytest.raises(ConsoleError):
            it.launch("sleep", "300")
        it.api.rearm("looked at the second", second)
        assert not guard.status()["latched"] and not it.api.fleet().killed
    guard.close()
