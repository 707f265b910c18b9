"""Sentences about putting back what an executed call wrote or deleted: kept before it runs, or said that it is not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.api.records import RestoreBody, RollbackRow
from tests.fakes.instance import Instance, until

RULES = {
    "permissions": {
        "allow": [
            *(f"shell({name}:*)" for name in ("cat", "cp", "echo", "rm", "touch")),
            "file(read:${WORKSPACE}/**)",
            "file(write:${WORKSPACE}/**)",
            "file(delete:${WORKSPACE}/**)",
        ],
        "ask": [],
        "deny": [],
    }
}
CODE = r"""
import json
def call(tool, argument):
    try:
        done = agent.execute(tool, argument)
        done = {k: v for k, v in done.items() if isinstance(v, (int, str, list))}
    except client.Refused as refused:
        done = {'status': refused.status, 'words': str(refused)}
    print('DONE ' + json.dumps(done), flush=True)
open('plan.txt', 'w').write('as it was\n')
open('gone.txt', 'w').write('once\n')
os.mkdir('many'); open('many/one', 'w').write('1')
call('shell', 'echo other > plan.txt; rm gone.txt; echo new > fresh.txt')
call('shell', 'rm -r many')
call('shell', 'cat plan.txt')
time.sleep(300)
"""


@pytest.fixture
def it(state_dir: Path) -> Iterator[Instance]:
    (state_dir / "policy.json").write_text(json.dumps(RULES))
    with Instance(state_dir) as instance:
        yield instance


def kept(it: Instance, answer: dict[str, Any]) -> list[RollbackRow]:
    """Its records, once what the call left was seen."""
    return [row for row in it.api.rollback().records if row.record_id in answer["rollback"] and row.state == "can_restore"]


def test_files_that_a_call_names_can_be_put_back_and_what_cannot_is_said(it: Instance) -> None:
    agent = it.python(CODE)
    until(lambda: it.output(agent).count("DONE ") == 3 and it.output(agent).endswith("\n"))
    first, folder, reading = [json.loads(line[5:]) for line in it.output(agent).splitlines() if line.startswith("DONE ")]
    workspace = it.places.workspaces_dir / it.agent(agent).session
    assert (workspace / "plan.txt").read_text() == "other\n" and not (workspace / "gone.txt").exists()
    until(lambda: len(kept(it, first)) == 3)
    rows = kept(it, first)
    assert sorted(r.path for r in rows) == ["fresh.txt", "gone.txt", "plan.txt"]
    for one in rows:
        it.api.restore(one.record_id, RestoreBody(reason="as it was", expect_now_sha256=it.api.rollback_detail(one.record_id).now_sha256))
    assert (workspace / "plan.txt").read_text() == "as it was\n" and (workspace / "gone.txt").read_text() == "once\n"
    assert not (workspace / "fresh.txt").exists()
    assert folder["rollback"] == [] and any("many/: a whole folder" in why for why in folder["not_kept"])
    assert reading["rollback"] == [] and ["without naming it" in why for why in reading["not_kept"]] == [True]
    [record] = [r for r in it.api.audit(q=agent).rows if r.kind == "execute" and "plan.txt; rm" in r.what]
    assert sorted(record.data["rollback"]) == sorted(first["rollback"])
