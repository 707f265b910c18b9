"""No folder of a workspace is on an agent's PATH; a tool that an operator's key signed is there by its name, and nothing else is."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.domain.errors import ConsoleError
from console.supervisor.verbs.oneshot import oneshot
from tests.fakes.instance import Instance, until

ROOT = Path(__file__).resolve().parents[2]
TRY = (
    "import shutil, subprocess, json\n"
    "found = shutil.which('lister')\n"
    "said = subprocess.run(['lister'], capture_output=True, text=True).stdout if found else ''\n"
    "def attempt(act):\n"
    "    try: act()\n"
    "    except OSError as error: return error.strerror\n"
    "    return 'done'\n"
    "place = os.path.dirname(found) if found else ''\n"
    "tries = [] if not found else [attempt(lambda: open(found, 'w')), attempt(lambda: os.unlink(found)),\n"
    "  attempt(lambda: os.chmod(found, 0o777)), attempt(lambda: os.chmod(place, 0o777)), attempt(lambda: open(place + '/more', 'w')),\n"
    "  attempt(lambda: os.rename(place, place + 'x'))]\n"
    "print(json.dumps({'path': os.environ['PATH'], 'found': found, 'said': said, 'tries': tries}), flush=True)\n"
)


@pytest.fixture
def it(state_dir: Path) -> Iterator[Instance]:
    with Instance(state_dir) as instance:
        yield instance


def verb(it: Instance, what: str, *words: str) -> tuple[int, str]:
    """What ``watchfloor WHAT WORDS`` hands over to, without another Python to start."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            return oneshot(what, [*words, "--state-dir", str(it.state_dir)]), said.getvalue()
    except ConsoleError as error:
        return int(error.exit_code), str(error)


def tries(it: Instance, session: str, **options: Any) -> dict[str, Any]:
    agent = it.python(TRY, context_id=session, **options)
    line = next(x for x in it.says(agent, "tries", 120).splitlines() if "tries" in x)
    until(lambda: not it.api.agent(agent).can or it.agent(agent).state not in ("running", "starting"))
    return dict(json.loads(line))


def prepared(it: Instance, session: str) -> Path:
    """A session with a program in its tools folder, which an agent put there."""
    maker = it.python(
        "os.makedirs('tools', exist_ok=True)\n"
        "open('tools/lister', 'w').write('#!/bin/sh\\necho good\\n'); os.chmod('tools/lister', 0o755)\n"
        "print('made', flush=True)",
        context_id=session,
    )
    it.says(maker, "made")
    return it.places.workspaces_dir / session / "tools"


def check_life_of_a_tool(it: Instance, session: str, **options: Any) -> None:
    tools = prepared(it, session)
    workspace = str(tools.parent)
    # 1. There, executable, unsigned: not found.
    seen = tries(it, session, **options)
    assert seen["found"] is None and seen["path"] == "/usr/local/bin:/usr/bin:/bin"
    # 2. Signed by the operator: found by its name, behind everything else, and out of the agent's hands.
    code, said = verb(it, "tools", "sign", session, "--tool", "lister", "--reason", "lists files")
    assert code == 0, said
    assert verb(it, "tools", "check", session)[0] == 0
    seen = tries(it, session, **options)
    assert seen["said"] == "good\n" and seen["path"].startswith("/usr/local/bin:/usr/bin:/bin:")
    assert "done" not in seen["tries"] and len(seen["tries"]) == 6
    assert not any(entry.startswith(workspace) or not entry.startswith("/") for entry in seen["path"].split(":"))
    # 3. Changed after it was signed: not found, and said why.
    (tools / "lister").write_text("#!/bin/sh\necho evil\n")
    assert verb(it, "tools", "check", session)[0] == 4
    seen = tries(it, session, **options)
    assert seen["found"] is None and workspace not in seen["path"]
    refused = [r for r in it.api.audit(limit=200).rows if r.kind == "tools.refused" and r.data["session"] == session]
    assert "is not what was signed" in refused[0].what and "There is no tools/manifest.json" in refused[-1].what
    # Nothing of it outlives its agents.
    until(lambda: not list((it.state_dir / "tools" / "offered").iterdir()))


def test_the_life_of_a_tool_in_a_managed_and_in_a_bubblewrap_agent(it: Instance) -> None:
    assert verb(it, "keys", "init")[0] == 0
    check_life_of_a_tool(it, "c-managed")
    check_life_of_a_tool(it, "c-wrapped", sandbox="bubblewrap")

    # An older manifest, put back by an agent, is not accepted in place of the newer one.
    tools = it.places.workspaces_dir / "c-managed" / "tools"
    old = (tools / "manifest.json").read_bytes()
    (tools / "lister").write_text("#!/bin/sh\necho good\n")
    (tools / "other").write_text("#!/bin/sh\necho other\n")
    code, said = verb(it, "tools", "sign", "c-managed", "--tool", "other", "--reason", "lister is withdrawn")
    assert code == 0, said
    (tools / "manifest.json").write_bytes(old)
    assert "older" in verb(it, "tools", "check", "c-managed")[1]
    assert tries(it, "c-managed")["found"] is None
    # The launch says what it came to.
    launched = it.api.launch(_body("c-managed"))
    assert any("older than one that was accepted" in note for note in launched.notes), launched.notes
    # As a person types it.
    command = [sys.executable, "-m", "console", "policy", "tools", "check", "c-wrapped", "--json", "--state-dir", str(it.state_dir)]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 4 and "is not what was signed" in done.stderr
    # Another session's manifest is none here; and only the very bytes that were reviewed are signed.
    (tools.parent.parent / "c-wrapped" / "tools" / "manifest.json").write_bytes(old)
    assert "another session" in verb(it, "tools", "check", "c-wrapped")[1]
    assert verb(it, "tools", "sign", "c-wrapped", f"--tool=lister={'0' * 64}", "--reason", "r")[0] == 4
    assert verb(it, "tools", "sign", "c-none", "--tool", "x", "--reason", "r")[0] == 3
    assert verb(it, "tools", "sign", "c-wrapped", "--tool", "../../x", "--reason", "r")[0] == 2


def _body(session: str) -> Any:
    from console.api.messages import LaunchBody

    return LaunchBody(argv=["true"], context_id=session)


@pytest.mark.engine
def test_the_life_of_a_tool_in_a_container(engine_socket: Path, state_dir: Path) -> None:
    with Instance(state_dir, "--engine-socket", str(engine_socket)) as it:
        assert verb(it, "keys", "init")[0] == 0
        prepared(it, "c-boxed")
        assert verb(it, "tools", "sign", "c-boxed", "--tool", "lister", "--reason", "lists files")[0] == 0
        seen = tries(it, "c-boxed", sandbox="docker")
        assert seen["said"] == "good\n" and seen["path"] == "/usr/local/bin:/usr/bin:/bin:/opt/watchfloor-tools"
        assert "done" not in seen["tries"] and len(seen["tries"]) == 6
