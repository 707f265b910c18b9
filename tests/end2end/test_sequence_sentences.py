"""Who has read a credential sends nothing out any more: not after a hundred other calls, not through a child, not after a restart."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from console.api.ladder import ScopeBody
from console.domain.errors import Conflict, NotFound
from tests.fakes.instance import Instance, until

ASK = "v = agent.permission({tool!r}, {argument!r}); print({argument!r}, v['verdict'], v['rule'], '-', v['reason'], flush=True)\n"
READ = ASK.format(tool="read_file", argument=".env")
SEND = ASK.format(tool="http_request", argument="https://out.example/")
STAY = "time.sleep(300)"


@pytest.fixture(scope="module")
def standing() -> Iterator[Instance]:
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o711)
    with Instance(folder) as instance:
        yield instance
    shutil.rmtree(folder)


@pytest.fixture
def it(standing: Instance) -> Iterator[Instance]:
    yield standing
    with suppress(NotFound, Conflict):
        standing.api.kill_scope(ScopeBody(reach="host"), "end of the sentence")
    until(lambda: not [a for a in standing.api.fleet().agents if a.ended_at is None])


def test_whoever_read_a_credential_reaches_no_host_however_much_it_does_between(it: Instance) -> None:
    padding = "".join(f"agent.permission('read_file', 'a{number}.txt')\n" for number in range(50))
    agent = it.python(SEND + READ + padding + SEND + ASK.format(tool="shell", argument="curl https://out.example/") + STAY)
    assert "allow" in it.says(agent, "https://out.example/ allow"), "before it read one it may"
    told = it.says(agent, "https://out.example/ deny")
    assert "sequence credential-then-network" in told and f"{agent} reads a credential" in told and "read_file .env" in told
    it.says(agent, "curl https://out.example/ deny sequence")
    assert any("credential-then-network" in words for words in it.agent(agent).taints)
    assert [row.kind for row in it.api.audit(q=agent).rows].count("sequence.step") == 1
    assert it.api.verify_audit().whole
