"""polkit's word on members of the roles' groups: a real polkitd on a bus of the test's own, with Watchfloor's policy as it is shipped.

Rules of the test stand for the administrator who answers the question: there is no session with a screen here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from console.supervisor.http.polkit import CHECK
from tests.fakes.instance import ROOT, until
from tests.fakes.members import UID, HostInstance, as_member, asked

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="accounts and groups are changed: this needs root")
DAEMON = Path("/usr/lib/polkit-1/polkitd")
ACTIONS = ROOT / "packaging/packages/files/watchfloor/usr/share/polkit-1/actions"
BUS = """<busconfig><type>system</type><listen>unix:path={sock}</listen><auth>EXTERNAL</auth><policy context="default">
<allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/></policy></busconfig>"""
RULES = f"""polkit.addRule(function(action, subject) {{
  if (action.id.indexOf("io.watchfloor.") == 0 && subject.user == "{UID}") return polkit.Result.YES;
  if (action.id.indexOf("io.watchfloor.") == 0 && subject.user == "{UID + 1}") return polkit.Result.NO;
}});
"""


class Bus:
    """A system bus and polkitd, for whatever is started with ``environment`` in a namespace with ``mounts``."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o755)
        self.sock, rules, actions = folder / "bus", folder / "rules", folder / "actions"
        rules.mkdir()
        shutil.copytree(ACTIONS, actions)
        (rules / "50-test.rules").write_text(RULES)
        (folder / "bus.conf").write_text(BUS.format(sock=self.sock))
        self.environment = {**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={self.sock}"}
        self.mounts = f"mount --bind {actions} /usr/share/polkit-1/actions && mount --bind {rules} /etc/polkit-1/rules.d"
        self.bus = self._run("dbus-daemon", f"--config-file={folder}/bus.conf", "--nofork")
        self.polkitd: subprocess.Popen[bytes] | None = None

    def _run(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(words, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start(self) -> None:
        until(self.sock.exists, words="the bus is there")
        self.polkitd = self._run("unshare", "--mount", "sh", "-c", f'{self.mounts} && exec "$0" --no-debug', str(DAEMON))
        look = ["timeout", "5", "pkaction", "--action-id", "io.watchfloor.rearm"]
        until(lambda: subprocess.run(look, env=self.environment, capture_output=True).returncode == 0, words="polkitd answers")

    def end_polkitd(self) -> None:
        if self.polkitd is not None:
            self.polkitd.kill()
            self.polkitd.wait()

    def end(self) -> None:
        self.end_polkitd()
        self.bus.kill()
        self.bus.wait()


@pytest.fixture(scope="module")
def bus() -> Iterator[Bus]:
    assert CHECK.exists() and DAEMON.exists(), "install polkitd"
    folder = Path(tempfile.mkdtemp(prefix="wf-polkit-"))
    made = Bus(folder)
    try:
        made.start()
        yield made
    finally:
        made.end()
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def host(bus: Bus, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostInstance]:
    made = HostInstance(tmp_path_factory.mktemp("h") / "state")
    made.mounts += f" && {bus.mounts} && export DBUS_SYSTEM_BUS_ADDRESS={bus.environment['DBUS_SYSTEM_BUS_ADDRESS']}"
    with made:
        yield made


def settings(sock: Path, value: int) -> Callable[[], tuple[int, Any]]:
    body = {"key": "heartbeat_s", "value": value, "reason": "test"}
    return lambda: asked(sock, "POST", "/api/settings", body)


def rearm(sock: Path) -> tuple[int, Any]:
    seen = asked(sock, "GET", "/api/kill-switch/rearm")[1]
    proof = {"operator": "test", "via": "console", "generation": seen["generation"]}
    return asked(sock, "POST", "/api/kill-switch", {"action": "rearm", "reason": "test", "kill_id": seen["to_type"], "proof": proof})


def test_who_polkit_allows_rearms_and_it_is_on_record(host: HostInstance) -> None:
    host.api.activate("test")
    for uid, role in ((UID + 1, "operator"), (UID + 2, "operator")):  # a rule says no; nobody is there to be asked for a password
        status, said = as_member(lambda: rearm(host.sock), role, uid=uid)
        assert status == 403 and "polkit did not allow it" in said["error"]
    assert host.api.kill_switch().killed
    status, said = as_member(lambda: rearm(host.sock), "operator")
    assert (status, said["killed"]) == (200, False)
    [row] = [row for row in host.api.audit().rows if row.kind == "polkit.allowed"]
    assert (row.actor, row.data["action"]) == (f"operator:{UID}", "io.watchfloor.rearm")


def test_who_polkit_allows_releases_a_session_that_is_evidence(host: HostInstance) -> None:
    agent = host.launch("sleep", "1000")
    session = host.agent(agent).session
    held = as_member(lambda: asked(host.sock, "POST", f"/api/contexts/{session}/hold", {"reason": "case 7"}), "operator")
    assert held[0] == 200, held
    release = lambda: asked(host.sock, "POST", f"/api/contexts/{session}/release", {"reason": "closed"})  # noqa: E731
    assert as_member(release, "operator", uid=UID + 1)[0] == 403
    assert as_member(release, "operator")[0] == 200
    host.api.kill(agent, reason="end of the test")


def test_who_polkit_allows_changes_settings(host: HostInstance) -> None:
    assert as_member(settings(host.sock, 31), "viewer", uid=UID + 1)[0] == 403
    status, said = as_member(settings(host.sock, 31), "viewer")
    assert status == 200, said


def test_the_status_offers_what_polkit_may_allow(host: HostInstance) -> None:
    said = as_member(lambda: asked(host.sock, "GET", "/api/status"), "viewer")[1]
    assert said["your_rights"] == ["read", "rearm", "release", "settings"]


def test_what_is_roots_alone_is_not_asked_about(host: HostInstance) -> None:
    for path in ("/api/shutdown", "/api/passphrase", "/api/tokens", "/api/keys/retire"):
        status, said = as_member(lambda: asked(host.sock, "POST", path, {}), "operator")  # noqa: B023
        assert status == 403 and "polkit" not in said["error"]


def test_polkit_gives_nothing_to_the_agents_account_or_to_who_has_no_role(host: HostInstance) -> None:
    assert as_member(settings(host.sock, 32), "operator", uid=65534)[0] == 403
    assert as_member(settings(host.sock, 32))[0] == 403


def test_without_an_answer_it_is_no(host: HostInstance, bus: Bus) -> None:
    """The last of the module: polkitd stays dead."""
    assert as_member(settings(host.sock, 33), "operator")[0] == 200
    bus.end_polkitd()
    assert as_member(settings(host.sock, 34), "operator")[0] == 403
