"""Connections that do not count: the one list, each with its reason. Nothing that an agent says, starts or names adds to it.

An agent can run a copy of a listed program, listen under a listed name, and ask another account for neither.

So the other end counts as a listed one only when both hold:

1. The address is the one at which the service listens.
2. It runs under an account that is not the agent's, or it is the machine's own program, installed by root and started before the agent.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

DNS_PORTS = frozenset({53})


@dataclass(frozen=True, slots=True)
class Service:
    """One kind of service whose connections do not count."""

    name: str
    reason: str
    programs: frozenset[str]
    """Names of its programs."""
    paths: re.Pattern[str]
    """Names that its unix socket has; an abstract one begins with an @."""
    ports: frozenset[int] = frozenset()
    """TCP ports of the loopback addresses."""


def _service(name: str, reason: str, programs: str, paths: str, ports: Collection[int] = ()) -> Service:
    return Service(name, reason, frozenset(programs.split()), re.compile(paths), frozenset(ports))


SERVICES = (
    _service(
        "resolver",
        "It answers questions about names and starts nothing for a client.",
        "systemd-resolved dnsmasq unbound named kresd pdns_recursor coredns",
        r"/run/systemd/resolve/io\.systemd\.Resolve(\.Monitor)?",
        DNS_PORTS,
    ),
    _service(
        "name service",
        "It answers questions about users, groups and hosts and starts nothing for a client.",
        "nscd nsncd sssd sssd_nss sssd_pam systemd-userdbd systemd-userwork systemd-machined avahi-daemon nslcd",
        r"(/var)?/run/(nscd/socket|nslcd/socket|avahi-daemon/socket|systemd/userdb/[\w.-]+)|/var/lib/sss/pipes/(private/)?(nss|pam)",
    ),
    _service(
        "display",
        "It draws windows and starts nothing for a client.",
        "Xorg Xwayland Xvfb Xephyr Xvnc gnome-shell kwin_wayland mutter sway weston labwc Hyprland wayfire cosmic-comp niri river cage",
        r"@?/tmp/\.X11-unix/X\d+|/run/user/\d+/wayland-\d+",
    ),
    _service(
        "D-Bus",
        "Every desktop program is connected to it; what it hands on is work that the receipt calls not covered.",
        "dbus-daemon dbus-broker dbus-broker-launch",
        r"(/var)?/run/dbus/system_bus_socket|/run/user/\d+/(bus|at-spi/bus(_\d+)?)|@?/tmp/dbus-\w+",
    ),
    _service(
        "journal",
        # systemd holds each line to the journal open too, so that none is lost when the journal restarts (sd_pid_notify_with_fds(3)).
        "It keeps lines of text and starts nothing for a client.",
        "systemd-journald systemd rsyslogd syslog-ng syslogd",
        r"/run/systemd/journal/(stdout|socket|dev-log|io\.systemd\.journal)|/dev/log",
    ),
)


@dataclass(frozen=True, slots=True)
class OtherEnd:
    """What is known of the other end of a connection."""

    address: str
    """Path or abstract name that its unix socket listens at; empty for TCP and for a pair without a name."""
    port: int
    """TCP port of its loopback address; 0 for anything else."""
    uid: int
    program: str
    """Path of its executable; empty when this account cannot see it."""
    start_ticks: int


@dataclass(frozen=True, slots=True)
class AgentEnd:
    """What is known of the agent."""

    uids: frozenset[int]
    start_ticks: int
    """When its first process started."""


def why_uncounted(end: OtherEnd, agent: AgentEnd) -> str:
    """The name of the service in the list; empty when the connection counts."""
    for service in SERVICES:
        is_there = service.paths.fullmatch(end.address) is not None if end.address else end.port in service.ports
        if is_there and _is_service(service, end, agent):
            return service.name
    return ""


def _is_service(service: Service, end: OtherEnd, agent: AgentEnd) -> bool:
    is_named = Path(end.program).name in service.programs
    if end.uid not in agent.uids and agent.uids:
        return is_named or not end.program  # a program of another account may be hidden from us; it is no agent's all the same
    return is_named and 0 < end.start_ticks < agent.start_ticks and is_installed(end.program)


def is_installed(program: str) -> bool:
    """Whether root alone can have put a program there: it and every folder above it belong to root, and no one else can write there."""
    try:
        path = Path(program).resolve()
        return program.startswith("/") and path.is_file() and all(_is_roots(one.lstat()) for one in (path, *path.parents))
    except (OSError, ValueError, RuntimeError):  # a link to itself, a NUL
        return False


def _is_roots(found: os.stat_result) -> bool:
    return found.st_uid == 0 and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
