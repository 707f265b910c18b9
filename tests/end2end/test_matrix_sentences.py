"""What a permission matrix bounds, live: a tool without a row is denied, rows bound what calls say, a broken file changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.api import endpoints as ep
from console.api.client.wire import Wire
from tests.fakes.instance import Instance, until

ASK = "v = agent.permission({tool!r}, {argument!r}); print({word!r}, v['verdict'], v['reason'], flush=True)\n"


@pytest.fixture
def it(state_dir: Path) -> Iterator[Instance]:
    (state_dir / "matrix.json").write_text(
        json.dumps(
            {
                "tools": {
                    "read_file": {"paths": ["${WORKSPACE}/**"]},
                    "file_write": "DENIED",
                    "db_query": {"databases": ["analytics"], "write": False},
                }
            }
        )
    )
    with Instance(state_dir) as instance:
        yield instance


def asked(it: Instance, tool: str, argument: object) -> str:
    """The verdict and why, as an agent is answered."""
    words = argument if isinstance(argument, str) else json.dumps(argument)
    agent = it.python(ASK.format(tool=tool, argument=words, word="asked") + "time.sleep(300)")
    return it.says(agent, "asked ")


def test_an_agent_reads_and_queries_and_neither_writes_nor_deletes_until_the_matrix_says_otherwise(it: Instance) -> None:
    assert "asked allow" in asked(it, "read_file", "a.txt")
    assert "asked deny" in (told := asked(it, "write_file", "a.txt")) and "denied" in told
    assert "not in the matrix" in asked(it, "delete_file", "a.txt")
    reads, writes = ({"database": "analytics", "sql": sql} for sql in ("select 1", "delete from visits"))
    assert "asked allow" in asked(it, "query_db", reads), "databases have no words in the rules: the matrix decides"
    assert "it may only read: DELETE" in asked(it, "query_db", writes)
    rows = Wire(it.places, 60).ask(ep.TOOLS)
    assert [(row.names, row.constraints) for row in rows.tools[:3]][1:] == [
        (["file_write"], "denied"),
        (["db_query"], "databases analytics; only reads"),
    ]
    file = it.state_dir / "matrix.json"
    file.write_text("{")
    assert "asked deny" in asked(it, "write_file", "a.txt"), "the last good one stays"
    assert until(lambda: [text for text in it.api.status().notices if "matrix.json" in text])
    file.write_text('{"tools": null}')
    assert "asked allow" in asked(it, "write_file", "a.txt")
