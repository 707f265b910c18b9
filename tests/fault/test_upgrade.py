"""A kill at each step of an upgrade of the guard's package: the agent is confirmed dead at every one, and the others are handed over.

The package's own scripts run as dpkg runs them, one by one, in a mount namespace that has folders of the test's in place of this machine's.
The test stands for dpkg's unpacking and for systemd: it ends and starts the guard under its account, with the capabilities of its unit.
"""

from __future__ import annotations

import configparser
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from console.cli.stop.panic import pressed
from console.killswitch.kernel import processes
from console.settings.places import Places
from tests.fakes.guard_world import NOBODY, SLEEP, GuardWorld, ticks, until
from tests.fakes.instance import ROOT

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="packages are installed by root")
SCRIPTS = ROOT / "packaging/packages/scripts"
FILES = ROOT / "packaging/packages/files/watchfloor-guard"
UNIT = "usr/lib/systemd/system/watchfloor-guard.service"
NAMESPACE = """
set -e
cd "$1"
mount -t tmpfs none over
for place in usr/lib var/lib etc; do
  mkdir -p "over/$place/up" "over/$place/work"
  mount -t overlay -o "lowerdir=/$place,upperdir=over/$place/up,workdir=over/$place/work" overlay "/$place"
done
mkdir -p /usr/lib/watchfloor-guard /var/lib/watchfloor
mount --bind package /usr/lib/watchfloor-guard
mount --bind "$2" /var/lib/watchfloor
mount -t tmpfs none /run
mkdir -p /run/systemd/system
echo made
exec sleep infinity
"""
SYSTEMCTL = '#!/bin/sh\necho "$*" >>"{asked}"\n'
OLD, NEW = "0.1.0", "0.2.0"


class Host(GuardWorld):
    """A guard that runs from the files of its package, and the steps of dpkg."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "state")
        self.folder, self.asked = folder, folder / "asked"
        self.guard: subprocess.Popen[bytes] | None = None
        for name in ("state", "over", "bin"):
            (folder / name).mkdir()
        self._lay(folder / "package", "")
        self._lay(folder / "newer", "\n# newer\n")
        with (folder / "newer/console/killswitch/service.py").open("a") as file:
            file.write('print("newer", file=sys.stderr, flush=True)\n')
        systemctl = folder / "bin/systemctl"
        systemctl.write_text(SYSTEMCTL.format(asked=self.asked))
        systemctl.chmod(0o755)
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", NAMESPACE, "sh", str(folder), str(self.state)], stdout=subprocess.PIPE, text=True
        )
        assert self.holder.stdout is not None and self.holder.stdout.readline() == "made\n"

    def _lay(self, place: Path, more: str) -> None:
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(FILES / "usr/lib/watchfloor-guard", place)
        for room in ("domain", "killswitch"):
            shutil.copytree(ROOT / "console" / room, place / "console" / room, ignore=skipped)
        shutil.copyfile(ROOT / "console/__init__.py", place / "console/__init__.py")
        for file in place.rglob("*.py"):
            file.write_text(file.read_text() + more)
        for one in (place, *place.rglob("*")):
            one.chmod(0o755 if one.is_dir() or one.suffix != ".py" else 0o644)

    # --- what dpkg does

    def script(self, package: str, name: str, *words: str) -> None:
        """One of the package's scripts, where it has one."""
        file = SCRIPTS / f"{package}.{name}"
        if file.exists():
            env = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
            subprocess.run(["nsenter", f"--target={self.holder.pid}", "--mount", "sh", str(file), *words], env=env, check=True)

    def unpack(self, part: int) -> None:
        """Each second file of the newer package takes the place of the old one, as dpkg does it: by a rename."""
        for file in sorted(p for p in (self.folder / "newer").rglob("*") if p.is_file())[part::2]:
            place = self.folder / "package" / file.relative_to(self.folder / "newer")
            draft = place.with_name(f"{place.name}.dpkg-new")
            shutil.copy2(file, draft)
            draft.rename(place)

    # --- what systemd does

    def asked_for_restart(self) -> bool:
        return self.asked.exists() and "try-restart watchfloor-guard.service" in self.asked.read_text()

    def start_service(self) -> None:
        """As the unit has it: its account and its capabilities."""
        unit = configparser.RawConfigParser(strict=False)
        unit.read_string((FILES / UNIT).read_text())
        caps = ",".join(f"+{name.removeprefix('CAP_').lower()}" for name in unit["Service"]["AmbientCapabilities"].split())
        account = ["--reuid=watchfloor-guard", "--regid=watchfloor-guard", "--clear-groups", "--no-new-privs"]
        account += [f"--inh-caps=-all,{caps}", f"--ambient-caps=-all,{caps}", f"--bounding-set=-all,{caps}"]
        command = ["nsenter", f"--target={self.holder.pid}", "--mount", "setpriv", *account, unit["Service"]["ExecStart"]]
        with (self.folder / "log").open("w") as log:
            self.guard = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    def started(self) -> None:
        self.start_service()
        assert self.guard is not None
        self.pid = self.guard.pid
        until(lambda: "ready" in self.log() or self.has_ended(), "the guard is ready")
        assert not self.has_ended(), self.log()
        self.instance = json.loads((self.state / "instance.json").read_text())["instance_id"]
        self.supervisor.close()
        self.operator.close()

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def has_ended(self) -> bool:
        return self.guard is None or self.guard.poll() is not None

    def stop_service(self, number: int = signal.SIGTERM) -> None:
        if self.guard is not None:
            self.guard.send_signal(number)
            self.guard.wait(60)
        self.supervisor.close()
        self.operator.close()
        self.pid = 0

    def restart(self) -> None:
        self.stop_service()
        self.started()

    # --- what is asserted

    def killed(self, agent: subprocess.Popen[bytes], agent_id: str) -> None:
        """A kill of one agent, by the guard that is there: confirmed dead."""
        receipt = self.pressed([agent_id])
        assert receipt.verified_zero, receipt.targets
        assert agent.wait(60) != 0 and not processes.is_alive(agent.pid)

    def panic(self) -> bool:
        """``watchfloor panic`` on this host: its own part, without what a supervisor does later. Whether all is confirmed dead."""
        places = Places(self.state, self.run, self.instance, False)
        return pressed(places, "in the middle of an upgrade", "test").verified_zero

    def close(self) -> None:
        self.stop_service(signal.SIGKILL)
        super().close()
        self.holder.kill()
        self.holder.wait()
        assert self.holder.stdout is not None
        self.holder.stdout.close()


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with closing(Host(tmp_path)) as made:
        made.script("watchfloor-guard", "postinst", "configure")
        made.started()
        assert Path(f"/proc/{made.pid}").stat().st_uid != 0
        yield made


def test_a_kill_at_each_step_of_an_upgrade_is_confirmed_and_the_others_are_handed_over(host: Host) -> None:
    steps: dict[str, Callable[[], None]] = {
        "the installed version runs": lambda: None,
        "prerm upgrade": partial(host.script, "watchfloor-guard", "prerm", "upgrade", NEW),
        "half unpacked": partial(host.unpack, 0),
        "unpacked": partial(host.unpack, 1),
        "postrm upgrade": partial(host.script, "watchfloor-guard", "postrm", "upgrade", NEW),
        "postinst configure": partial(host.script, "watchfloor-guard", "postinst", "configure", OLD),
        "the guard was restarted": host.restart,
        "prerm upgrade of the supervisor": partial(host.script, "watchfloor", "prerm", "upgrade", NEW),
        "postrm upgrade of the supervisor": partial(host.script, "watchfloor", "postrm", "upgrade", NEW),
        "postinst configure of the supervisor": partial(host.script, "watchfloor", "postinst", "configure", OLD),
    }
    agents = {f"a-{n}": host.agent(f"a-{n}", *SLEEP, env={**os.environ, **NOBODY}) for n in range(len(steps) + 1)}
    for agent_id, (name, step) in zip(list(agents), steps.items(), strict=False):
        step()
        assert host.operator.status()["agents"] >= len(agents), name
        assert all(one.poll() is None for one in agents.values()), f"{name}: agents that were not killed go on"
        host.killed(agents.pop(agent_id), agent_id)
    assert host.asked_for_restart() and "newer" in host.log(), "the guard that runs now is the newer one"
    assert not host.operator.status()["latched"] and len(agents) == 1
    assert host.panic() and next(iter(agents.values())).wait(60) != 0
    host.restart()
    assert host.operator.status()["latched"], "what was killed stays killed"


@pytest.mark.parametrize("moment", ["between stop and start", "it crashed and cannot start from half a package"])
def test_a_panic_while_the_upgrade_has_no_guard_is_confirmed_and_the_newer_guard_obeys_it(host: Host, moment: str) -> None:
    agent = host.agent("a-1", *SLEEP, env={**os.environ, **NOBODY})
    host.script("watchfloor-guard", "prerm", "upgrade", NEW)
    host.unpack(0)
    if moment == "between stop and start":
        host.unpack(1)
        host.script("watchfloor-guard", "postinst", "configure", OLD)
        host.stop_service()
    else:
        lost = host.folder / "package/console/domain/errors.py"
        lost.rename(lost.with_suffix(".dpkg-tmp"))
        host.stop_service(signal.SIGKILL)
        host.start_service()
        until(host.has_ended, "a guard of half a package does not start")
    assert agent.poll() is None
    assert host.panic() and agent.wait(60) != 0
    host.unpack(0)
    host.unpack(1)
    host.started()
    status = host.operator.status()
    assert status["latched"] and "newer" in host.log(), status


def test_the_guard_of_the_service_adopts_a_process_of_another_account_and_kills_it(host: Host) -> None:
    account = ["setpriv", "--reuid=61234", "--regid=61234", "--clear-groups"]
    one = subprocess.Popen([*account, "sleep", "600"], stdin=subprocess.DEVNULL)
    try:
        until(lambda: processes.command_line(one.pid) == "sleep 600", "it runs its own program")
        who: dict[str, Any] = {"pid": one.pid, "spare": [os.getpid()]}
        shown = host.supervisor.call("adoptable", start_ticks=ticks(one.pid), around="o-1", **who)
        assert shown["why_not"] == ""
        who |= {name: shown[name] for name in ("start_ticks", "exe", "uid")}
        done = host.supervisor.call("adopt", agent_id="o-1", by="test", **who)
        assert (done["moved"], done["best_effort"]) == (1, "") and "watchfloor" in (processes.cgroup_line(one.pid) or "")
        host.killed(one, "o-1")
    finally:
        one.kill()
        one.wait()
