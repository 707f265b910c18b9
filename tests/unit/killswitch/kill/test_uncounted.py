"""The one list of connections that do not count: each entry holds for the real service, and for nothing that an agent can make."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from console.killswitch.kill import uncounted
from console.killswitch.kill.uncounted import SERVICES, AgentEnd, OtherEnd, is_installed, why_uncounted

AGENT = AgentEnd(frozenset({1000}), start_ticks=5000)
REAL = {
    "resolver": [
        OtherEnd("", 53, 101, "/usr/lib/systemd/systemd-resolved", 100),
        OtherEnd("/run/systemd/resolve/io.systemd.Resolve", 0, 101, "/usr/lib/systemd/systemd-resolved", 9000),
        OtherEnd("", 53, 0, "/usr/sbin/dnsmasq", 100),
    ],
    "name service": [
        OtherEnd("/var/run/nscd/socket", 0, 0, "/usr/sbin/nscd", 100),
        OtherEnd("/run/systemd/userdb/io.systemd.DynamicUser", 0, 0, "/usr/lib/systemd/systemd-userdbd", 100),
        OtherEnd("/var/lib/sss/pipes/nss", 0, 0, "", 0),
    ],
    "display": [
        OtherEnd("@/tmp/.X11-unix/X0", 0, 0, "/usr/lib/xorg/Xorg", 100),
        OtherEnd("/tmp/.X11-unix/X1", 0, 1000, "/usr/bin/Xwayland", 100),
        OtherEnd("/run/user/1000/wayland-0", 0, 1000, "/usr/bin/gnome-shell", 100),
    ],
    "D-Bus": [
        OtherEnd("/run/dbus/system_bus_socket", 0, 102, "/usr/bin/dbus-daemon", 100),
        OtherEnd("/run/user/1000/bus", 0, 1000, "/usr/bin/dbus-daemon", 100),
    ],
    "journal": [
        OtherEnd("/run/systemd/journal/stdout", 0, 0, "/usr/lib/systemd/systemd-journald", 100),
        OtherEnd("/run/systemd/journal/stdout", 0, 0, "/usr/lib/systemd/systemd", 100),
        OtherEnd("/dev/log", 0, 0, "", 0),
    ],
}
CASES = [pytest.param(name, end, id=f"{name} {end.address or end.port}") for name, ends in REAL.items() for end in ends]


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The services of the table are installed where distributions put them."""
    monkeypatch.setattr(uncounted, "is_installed", lambda program: program.startswith("/usr/"))


def test_every_entry_has_a_reason_and_a_case() -> None:
    assert {service.name for service in SERVICES} == set(REAL)
    assert all(service.reason.endswith(".") and service.programs for service in SERVICES)


@pytest.mark.parametrize(("name", "end"), CASES)
def test_the_real_service_does_not_count(name: str, end: OtherEnd) -> None:
    assert why_uncounted(end, AGENT) == name


@pytest.mark.parametrize(("name", "end"), CASES)
def test_the_same_at_another_address_counts(name: str, end: OtherEnd) -> None:
    assert why_uncounted(replace(end, address="/tmp/work.sock", port=0), AGENT) == ""
    assert why_uncounted(replace(end, address="", port=8080), AGENT) == ""
    if end.address:
        assert why_uncounted(replace(end, address=f"/tmp{end.address}"), AGENT) == ""
        assert why_uncounted(replace(end, address=f"{end.address}/x"), AGENT) == ""


@pytest.mark.parametrize(("name", "end"), CASES)
def test_what_an_agent_of_the_same_account_makes_counts(name: str, end: OtherEnd) -> None:
    own = replace(end, uid=1000, program=end.program or "/usr/sbin/rsyslogd")
    assert why_uncounted(replace(own, start_ticks=5001), AGENT) == "", "a copy of the service that it started"
    assert why_uncounted(replace(own, start_ticks=100, program="/home/u/" + Path(own.program).name), AGENT) == "", "its own program"
    assert why_uncounted(replace(own, start_ticks=100, program="/usr/bin/python3"), AGENT) == "", "another program under that name"
    assert why_uncounted(replace(own, start_ticks=100, program=""), AGENT) == "", "a program that cannot be seen"
    assert why_uncounted(replace(own, start_ticks=0), AGENT) == ""


def test_another_program_of_another_account_counts() -> None:
    assert why_uncounted(OtherEnd("/run/dbus/system_bus_socket", 0, 0, "/usr/bin/python3", 100), AGENT) == ""


def test_an_agent_of_which_no_account_is_known_is_given_nothing() -> None:
    assert why_uncounted(OtherEnd("", 53, 0, "/usr/sbin/dnsmasq", 9000), AgentEnd(frozenset(), 5000)) == ""


def test_installed_means_by_root_and_by_no_one_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    mine = tmp_path / "dbus-daemon"
    shutil.copy(sys.executable, mine)
    link = tmp_path / "link"
    link.symlink_to(link)
    assert is_installed("/bin/sleep") and is_installed("/usr/bin/env")
    for not_so in (str(mine), "bin/sleep", "", "/usr/bin", "/usr/bin/no-such", str(link), "/usr/bin/\0"):
        assert not is_installed(not_so), not_so
