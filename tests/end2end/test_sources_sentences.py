"""What an agent's type has is what the agent gets: destinations, registries, memory, time; a broken file starts nobody."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.api.messages import AllowlistEntryBody
from console.domain.errors import ConsoleError
from tests.fakes.instance import Instance, until
from tests.fakes.standing import standing_instance

EXAMPLE = (Path(__file__).parents[1] / "data" / "python-data-agent.json").read_text()
GET = (
    "import os, json, urllib.request, urllib.error\n"
    "def get(url):\n"
    "  try: return urllib.request.urlopen(url, timeout=60).status\n"
    "  except urllib.error.HTTPError as e: return [e.code, 'not in allowlist' in e.read(500).decode()]\n"
    "  except OSError as e: return 0\n"
)


@pytest.fixture(scope="module")
def it() -> Iterator[Instance]:
    with standing_instance(prepare=lambda folder: (folder / "sources").mkdir(), envoy=True) as instance:
        yield instance


def have(it: Instance, **changes: object) -> None:
    (it.state_dir / "sources" / "python-data-agent.json").write_text(json.dumps({**json.loads(EXAMPLE), **changes}))


@pytest.mark.envoy
def test_an_agent_of_a_type_gets_what_its_type_has_and_no_more(it: Instance) -> None:
    registry = {"name": "inner", "url": "http://packages.example.org/simple/", "trusted": True}
    have(it, package_managers={"pip": {"enabled": True, "registries": [registry], "blocked_packages": ["Py.Auto-GUI"]}})
    for host in ("api.github.com", "packages.example.org", "other.example.com"):
        it.api.add_entry(AllowlistEntryBody(host=host, port=80, reason="tests", owner="tests"))
    code = GET + (
        "print('env', os.environ.get('PIP_INDEX_URL'), os.environ.get('PIP_TRUSTED_HOST'), os.environ.get('npm_config_offline'))\n"
        "print('listed', get('http://api.github.com/'))\n"
        "print('other', get('http://other.example.com/'))\n"
        "print('blocked', get('http://packages.example.org/simple/py_auto_gui/x.whl'), get('http://packages.example.org/simple/PY-auto--gui/'))\n"
        "print('fine', get('http://packages.example.org/simple/pandas/'), flush=True)\n"
        "child = agent.spawn(['python3', '-c', 'import os; print(os.environ.get(\"PIP_INDEX_URL\"))'])\n"
        "print('child', child, flush=True); time.sleep(300)\n"
    )
    agent = it.python(code, agent_type="python-data-agent")
    said = it.says(agent, "child")
    assert "env http://packages.example.org/simple/ packages.example.org true" in said
    assert "listed [403, True]" not in said and "fine [403, True]" not in said  # there: refused by nobody but the world
    assert "other [403, True]" in said
    assert "blocked [403, True] [403, True]" in said
    view = it.agent(agent)
    assert view.network_mode == "PROXIED" and view.limits["wall_s"] == 300.0
    assert next(h.words for h in it.api.agent(agent).hardening if h.name == "memory bounded") == "2048 MiB"
    child = until(lambda: [a for a in it.api.fleet().agents if a.parent_id == agent])[0]
    assert child.network_mode == "PROXIED" and child.limits["wall_s"] == 300.0
    it.says(child.id, "http://packages.example.org/simple/")
    it.api.kill(agent, tree=True)


def test_the_example_is_shown_and_a_broken_file_says_where_and_starts_nobody(it: Instance) -> None:
    have(it)
    (shown,) = it.api.sources().types
    assert shown.ok and "wall time 300 s" in shown.enforced and "memory 2048 MiB" in shown.enforced
    assert any("https registry: not available, because a tunnel shows no path" in line for line in shown.not_enforced)
    have(it, runtime={"max_memory_mb": "much"})
    with pytest.raises(ConsoleError, match=r"python-data-agent.json: \$.runtime.max_memory_mb: "):
        it.launch("true", agent_type="python-data-agent")
    assert not it.api.sources().types[0].ok
    with pytest.raises(ConsoleError, match=r"python-data-agent.json: \$.runtime.max_memory_mb: "):
        it.launch("true", agent_type="python-data-agent", network_mode="NONE")
    have(it, web_access={"enabled": False}, package_managers={}, git={"enabled": False})
    agent = it.launch("sleep", "300", agent_type="python-data-agent")
    assert it.agent(agent).network_mode == "NONE"
    it.api.kill(agent)


@pytest.mark.parametrize("sandbox", ["none", "bubblewrap"])
def test_a_session_with_pip_has_a_virtual_environment_of_its_agents_own_behind_the_systems_programs(it: Instance, sandbox: str) -> None:
    have(it)
    code = (
        "import os, shutil, subprocess; home = os.environ['WATCHFLOOR_WORKSPACE']; mine = home + '/.venv/bin'\n"
        "print('path', os.environ['PATH'].split(':')[-1] == mine, shutil.which('python3').startswith(mine),"
        " os.stat(mine).st_uid == os.getuid())\n"
        "open(mine + '/ls', 'w').write('#!/bin/sh'); os.chmod(mine + '/ls', 0o755); print('ls', shutil.which('ls').startswith(mine))\n"
        "print('own', subprocess.run([mine + '/python', '-c', 'import sys; print(sys.prefix)'],"
        " capture_output=True, text=True).stdout, flush=True)\n"
    )
    context = f"venv-{sandbox}"
    said = it.says(it.python(code, sandbox=sandbox, agent_type="python-data-agent", context_id=context), "own", 120)
    assert "path True False True" in said and "ls False" in said and f"{context}/.venv" in said.split("own")[1]
    again = it.python(
        "print(os.path.exists(os.environ['WATCHFLOOR_WORKSPACE'] + '/.venv/bin/ls'), 'kept', flush=True)",
        sandbox=sandbox,
        agent_type="python-data-agent",
        context_id=context,
    )
    assert "True kept" in it.says(again, "kept")
    assert not [path.name for path in it.places.output_dir.iterdir() if path.name.startswith("venv-")]


@pytest.mark.envoy
def test_a_type_whose_file_is_gone_leaves_its_agents_as_narrow_as_they_were_and_what_was_asked_for_stays_in_the_record(
    state_dir: Path,
) -> None:
    (state_dir / "sources").mkdir()
    with Instance(state_dir, envoy=True) as it:
        have(it)
        until(lambda: it.api.allowlist().envoy == "healthy", words="Envoy is healthy")
        for host in ("api.github.com", "other.example.com"):
            it.api.add_entry(AllowlistEntryBody(host=host, port=80, reason="tests", owner="tests"))
        code = GET + "import itertools\nfor n in itertools.count():\n"
        code += "  print(f'look {n}:', get('http://other.example.com/'), get('http://api.github.com/'), flush=True); time.sleep(0.2)"
        agent = it.python(code, agent_type="python-data-agent")
        assert "look 0: [403, True] [403" not in it.says(agent, "look 0")
        (state_dir / "sources" / "python-data-agent.json").unlink()
        until(lambda: len(it.api.egress().egress) >= 2, words="two requests are in the ledger")
        it.stop(signal.SIGKILL)
        seen = it.output(agent).count("\n")
        it.start()
        until(lambda: it.api.allowlist().envoy == "healthy", words="Envoy is healthy again")
        until(lambda: "[403, True]" in "".join(it.output(agent).splitlines(keepends=True)[seen:]), words="its portal is there again")
        answers = [line.partition(": ")[2] for line in it.output(agent).splitlines()[seen:]]
        assert {a[: len("[403, True]")] for a in answers if not a.startswith("0 ")} == {"[403, True]"}
        assert not any(a.startswith("[403, True] [403") for a in answers)  # what its type has is still there
        assert any("python-data-agent.json is gone" in text for text in it.api.status().notices)
        with pytest.raises(ConsoleError, match="python-data-agent.json is gone"):
            it.launch("true", parent_id=agent)
        it.api.kill(agent)
        rows = it.api.egress(limit=1000).egress
        until(lambda: _sealed(it) >= len(rows), words="every request of the ledger is in the audit's digests")


def _sealed(it: Instance) -> int:
    return sum(int(r.data["requests"]) for r in it.api.audit(q="egress.requests").rows if r.kind == "egress.requests")
