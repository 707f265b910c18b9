"""Sessions' workspaces: described, measured, kept as evidence after a kill, gone when their time is over, shared by two supervisors."""

from __future__ import annotations

import json
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.api.agents.sessions import ContextActBody, ContextView
from console.domain.errors import Denied, NotFound, TooMany
from tests.fakes.instance import Instance, free_port, until

WRITE = "import os, time\nos.makedirs('data', exist_ok=True)\nopen('data/f', 'wb').write(b'x' * 300000)\nprint('written', flush=True)\n"
STAY = WRITE + "time.sleep(300)"
QUICK = {"measure_s": 0.2, "sweep_s": 0.3, "ttl_days": 0.5 / 86400}


def instance(folder: Path, **workspaces: object) -> Instance:
    folder.chmod(0o711)
    (folder / "settings.json").write_text(json.dumps({"workspaces": {**QUICK, **workspaces}}))
    return Instance(folder)


@pytest.fixture
def quick(state_dir: Path) -> Iterator[Instance]:
    with instance(state_dir, metrics_port=free_port()) as it:  # an option of before, which opens nothing any more
        yield it


def context(it: Instance, context_id: str) -> ContextView | None:
    return next((c for c in it.api.contexts().contexts if c.context_id == context_id), None)


def seen(it: Instance, context_id: str) -> ContextView:
    found = context(it, context_id)
    assert found is not None
    return found


def test_a_session_is_described_measured_and_gone_when_nobody_used_it_for_its_time(quick: Instance) -> None:
    agent = quick.python(STAY, context_id="c1")
    quick.says(agent, "written")
    home = quick.places.workspaces_dir / "c1"
    until(lambda: seen(quick, "c1").bytes > 300_000)
    until((home / ".context.json").exists)
    note = json.loads((home / ".context.json").read_text())
    assert note["context_id"] == "c1" and {"created_at", "last_accessed_at", "ttl_days", "disk_usage_bytes"} <= set(note)
    port = json.loads((quick.state_dir / "settings.json").read_text())["workspaces"]["metrics_port"]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 60)
    status, _, told = quick.scrape("/metrics/sessions")
    assert status == 200
    assert 'context_workspace_bytes{agent="' in told and 'context_id="c1"' in told
    time.sleep(1.0)
    assert home.exists()  # it is in use
    with pytest.raises(Denied):
        quick.api.act_on_context("delete", "c1", ContextActBody(reason="x"))
    os.kill(quick.agent_pid(agent), 9)  # it ends without a kill of ours: nothing to keep
    until(lambda: not home.exists(), words="its time is over")
    until(lambda: context(quick, "c1") is None)
    until(lambda: [r for r in quick.api.audit().rows if r.kind == "workspace.deleted"])
    again = quick.python(STAY, context_id="c1")  # the session begins anew
    quick.says(again, "written")


def test_what_was_killed_stays_as_evidence_until_an_operator_releases_it(quick: Instance) -> None:
    agent = quick.python(STAY, context_id="c2")
    quick.says(agent, "written")
    assert quick.api.kill(agent, reason="it misbehaved").verified_zero
    until(lambda: seen(quick, "c2").hold)
    held = seen(quick, "c2")
    assert "it misbehaved" in held.hold and held.goes_at is None
    time.sleep(1.0)
    assert (quick.places.workspaces_dir / "c2" / "data" / "f").exists()
    with pytest.raises(Denied, match="evidence"):
        quick.api.act_on_context("delete", "c2", ContextActBody(reason="x"))
    quick.api.act_on_context("release", "c2", ContextActBody(reason="looked at"))
    until(lambda: context(quick, "c2") is None)  # the folder goes first, then the session is forgotten
    assert not (quick.places.workspaces_dir / "c2").exists()
    with pytest.raises(NotFound):
        quick.api.act_on_context("hold", "c2", ContextActBody(reason="x"))


def test_a_run_without_a_session_leaves_no_workspace(quick: Instance) -> None:
    agent = quick.python(WRITE)
    until(lambda: quick.agent(agent).ended_at)
    name = quick.agent(agent).session
    until(lambda: not (quick.places.workspaces_dir / name).exists())
    [deleted] = until(lambda: [r for r in quick.api.audit().rows if r.kind == "workspace.deleted"])
    assert name in deleted.what and "stateless" in deleted.what, "it had one, and it went for that reason"


def test_a_session_beyond_its_bound_is_frozen_and_takes_no_more_agents(state_dir: Path) -> None:
    with instance(state_dir, session_max_gib=100_000 / (1 << 30), ttl_days=7.0) as it:
        agent = it.python(STAY, context_id="c1")
        until(lambda: "operator" in it.agent(agent).causes, words="it is frozen")
        assert "holds" in seen(it, "c1").over
        with pytest.raises(TooMany):
            it.python(STAY, context_id="c1")
        (it.places.workspaces_dir / "c1" / "data" / "f").unlink()
        until(lambda: not seen(it, "c1").over)
        it.api.thaw(agent)
        assert it.agent(agent).causes == []


def test_two_supervisors_share_a_root_and_neither_deletes_what_the_other_uses(state_dir: Path) -> None:
    shared = Path(tempfile.mkdtemp(dir=state_dir))
    shared.chmod(0o711)
    first, second = state_dir / "one", state_dir / "two"
    for folder in (first, second):
        folder.mkdir(mode=0o711)
    with instance(first, root=str(shared)) as one, instance(second, root=str(shared)) as two:
        ended = one.python(WRITE + "while not os.path.exists('data/go'): time.sleep(0.05)\nos.unlink('data/go')", context_id="c1")
        one.says(ended, "written")
        here = two.python("import os, time\nprint(os.listdir('data'), flush=True)\ntime.sleep(300)", context_id="c1")
        assert "['f']" in two.says(here, "f")  # either serves the session
        (shared / "c1" / "data" / "go").touch()
        until(lambda: one.agent(ended).ended_at)
        time.sleep(1.5)
        assert (shared / "c1" / "data" / "f").exists()
        spy = two.python(f"import os\nprint('sees', os.listdir({str(shared)!r}), flush=True)", context_id="c2")
        assert "sees ['c2']" in two.says(spy, "sees")
        os.kill(two.agent_pid(here), 9)
        until(lambda: not (shared / "c1").exists())
