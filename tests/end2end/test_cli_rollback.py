"""From a terminal: what an agent changed is listed, shown and put back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from console.rollback.store import RollbackStore
from tests.fakes.terminal import Terminal, open_terminal, until

# An agent of twelve lines: it asks on its own socket before it writes, as console/integrations/client.py does.
AGENT = """
import http.client, json, os, socket, sys
def ask(tool, argument):
    line = http.client.HTTPConnection("watchfloor")
    line.sock = socket.socket(socket.AF_UNIX)
    line.sock.connect(os.environ["WATCHFLOOR_AGENT_SOCKET"])
    line.request("POST", "/v1/permission", json.dumps({"tool": tool, "argument": argument}), {"content-type": "application/json"})
    return json.loads(line.getresponse().read())["verdict"]
open("output/plan.txt", "w").write("one\\n")
print(ask("write_file", "output/plan.txt"), flush=True)
open("output/plan.txt", "w").write("two\\n")
print(ask("write_file", "../../etc/passwd"), flush=True)
"""


@pytest.fixture
def terminal(state_dir: Path) -> Iterator[Terminal]:
    with open_terminal(state_dir) as made:
        made.serve_forked()
        yield made


def test_a_file_an_agent_overwrote_is_shown_and_put_back_once(terminal: Terminal) -> None:
    said = terminal("run", "--wait", "--session", "work", "--", "python3", "-c", AGENT)
    assert (said.code, said.out) == (0, "allow\ndeny\n"), said
    file = terminal.places.workspaces_dir / "work" / "output" / "plan.txt"
    assert file.read_text() == "two\n"
    [record] = terminal("rollback", "list", "--json").json["records"]
    assert (record["kind"], record["path"]) == ("file_write", "output/plan.txt")
    shown = terminal("rollback", "show", record["record_id"])
    assert shown.code == 0 and "- two" in shown.out and "+ one" in shown.out
    # Not if it is not what was looked at.
    refused = terminal("rollback", "restore", record["record_id"], "--reason", "r", "--expect-now", "0" * 64)
    assert refused.code == 1 and file.read_text() == "two\n"
    # Not without a reason.
    assert terminal("rollback", "restore", record["record_id"]).code == 2
    restored = terminal("rollback", "restore", record["record_id"], "--reason", "wrong plan")
    assert restored.code == 0, restored
    assert file.read_text() == "one\n"
    assert until(lambda: terminal("rollback", "list", "--json").json["records"][-1]["state"] != "can_restore")
    assert any(r["kind"].startswith("rollback") for r in terminal("audit", "tail", "--json").json["records"])
    assert terminal("audit", "verify").code == 0


def test_a_record_that_somebody_changed_is_told_by_the_log_and_not_put_back(terminal: Terminal) -> None:
    assert terminal("run", "--wait", "--session", "work", "--", "python3", "-c", AGENT).code == 0
    whole = terminal("audit", "verify")
    assert whole.code == 0 and "1 rollback record" in whole.out and "(!)" not in terminal("rollback", "list").out
    with closing(sqlite3.connect(terminal.places.rollback_dir / "records.db")) as connection:
        connection.execute("DROP TRIGGER records_facts")
        connection.execute("UPDATE records SET before_sha256 = NULL, before_size = 0")  # a restore would delete the file
        connection.commit()
    [record] = terminal("rollback", "list", "--json").json["records"]
    assert record["doubt"] == "it was changed after it was recorded"
    assert (
        "(!)" in terminal("rollback", "list").out and "a restore would be refused" in terminal("rollback", "show", record["record_id"]).out
    )
    said = terminal("rollback", "restore", record["record_id"], "--reason", "r")
    file = terminal.places.workspaces_dir / "work" / "output" / "plan.txt"
    assert said.code == 1 and "Not restored" in said.err and file.read_text() == "two\n"
    verdict = terminal("audit", "verify")
    assert verdict.code == 1 and f"LOG NOT INTACT: rollback record {record['record_id']}: it was changed" in verdict.out


def test_a_file_that_changed_since_is_not_put_back(terminal: Terminal) -> None:
    assert terminal("run", "--wait", "--session", "work", "--", "python3", "-c", AGENT).code == 0
    file = terminal.places.workspaces_dir / "work" / "output" / "plan.txt"
    [record] = terminal("rollback", "list", "--json").json["records"]
    store = RollbackStore(terminal.places.rollback_dir, terminal.places.workspaces_dir)
    try:  # what the agent left is looked at a moment later: only then can a later change be told from its own
        assert until(lambda: store.get(record["record_id"]).after_known)
    finally:
        store.close()
    file.write_text("three\n")
    said = terminal("rollback", "restore", record["record_id"], "--reason", "r")
    assert said.code == 1 and "Not restored" in said.err and file.read_text() == "three\n"
