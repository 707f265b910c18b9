"""Which PID namespaces this host lets us make, found out by making one, and what would change that."""

from __future__ import annotations

import os
from pathlib import Path

from console.domain.sandbox import Finding
from console.sandbox import bubblewrap
from console.sandbox.managed import may_unshare

_SYSCTLS = Path("/proc/sys")
_ROOT = "run Watchfloor as root (its agents then run under a uid of their own)"


def find_pid_namespaces(sysctls: Path = _SYSCTLS) -> Finding:
    """Whether agents started here get a PID namespace of their own."""
    if os.geteuid() == 0:
        if may_unshare():
            return Finding(True, "unshare of PID, mount, IPC and network namespaces: done")
        return Finding(False, "unshare of PID, mount, IPC and network namespaces: refused", ("give the supervisor CAP_SYS_ADMIN",))
    tried = bubblewrap.probe()
    if tried.ok:
        return Finding(True, "bubblewrap --unshare-pid: a sandbox was made and ended")
    return Finding(False, f"bubblewrap --unshare-pid: {tried.reason.rstrip('.')}", _ways(tried.reason, sysctls))


def _ways(reason: str, sysctls: Path) -> tuple[str, ...]:
    ways = ["install bubblewrap (apt install bubblewrap)"] if "not installed" in reason else []
    if _value(sysctls, "kernel/apparmor_restrict_unprivileged_userns") == "1":
        # Ubuntu 24.04: the profile bwrap-userns-restrict comes with the package apparmor-profiles.
        ways.append("an AppArmor profile for bwrap (bwrap-userns-restrict), or sysctl kernel.apparmor_restrict_unprivileged_userns=0")
    if _value(sysctls, "kernel/unprivileged_userns_clone") == "0":
        ways.append("sysctl kernel.unprivileged_userns_clone=1")
    if _value(sysctls, "user/max_user_namespaces") == "0":
        ways.append("sysctl user.max_user_namespaces=15000 (any number above 0)")
    return (*ways, _ROOT)


def _value(sysctls: Path, name: str) -> str:
    """Empty where this kernel has no such setting."""
    try:
        return (sysctls / name).read_text().strip()
    except OSError:
        return ""
