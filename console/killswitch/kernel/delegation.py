"""Where an instance's cgroup tree can live: root's own, a delegated systemd user scope, a cgroup that is ours already, or nowhere.

Everything is found out by doing it, within a bounded time. ``python -m console.killswitch.kernel.delegation`` tries the cgroup it runs in.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import console
from console.domain.errors import Unavailable
from console.domain.sandbox import Finding
from console.killswitch.kernel.cgroups import Leaf, Mounts, find_mounts
from console.killswitch.kernel.processes import cgroup_line

SYSTEMD_RUN = ("/usr/bin/systemd-run", "/bin/systemd-run")
"""Where systemd-run may be; PATH is never asked."""
TRY_S = 5.0
"""Longest wait in seconds for one trial: a user systemd that hangs costs no more."""
ASKED_VARIABLE = "WATCHFLOOR_SCOPE_ASKED"
"""Set on what is started in a scope: whatever came of it, it does not ask again."""
_SCOPE = re.compile(r"^watchfloor-[0-9a-f]{8}-[0-9a-f]{6}\.scope\Z")
# systemd.resource-control(5), systemd.scope(5). Without the second an agent that runs out of memory would end the whole scope, the
# guard included; systemd before 253 knows no such setting for scopes.
_PROPERTIES = (("Delegate=yes", "OOMPolicy=continue"), ("Delegate=yes",))
_ROOT = "run Watchfloor as root (its agents then run under a uid of their own)"


@dataclass(frozen=True, slots=True)
class Home:
    """How guard and supervisor must be started to have a cgroup tree of their own."""

    prefix: tuple[str, ...] = ()
    """Put before the command; empty: start it as it is."""
    environment: dict[str, str] = field(default_factory=dict)
    """Added to the command's environment."""
    why_not: str = ""
    """Why no scope could be had, where one was wanted."""


def find_home(instance_id: str, mounts: Mounts | None = None) -> Home:
    """Tried in this order: root's own tree, the scope or delegated cgroup we are in, a new user scope, whatever cgroup is writable."""
    if os.geteuid() == 0 or os.environ.get(ASKED_VARIABLE):
        return Home()
    mounts = mounts or find_mounts()
    own = own_folder(mounts)
    if mounts.v2 is None or own is None:
        return Home(why_not="no cgroup v2 is mounted here")
    # Inside a session's own tree (user@UID.service) being writable means nothing: the next logout or terminal ends what lives there.
    in_session = any(part.startswith("user@") for part in own.parts)
    if scope_of(own) is not None or (not in_session and is_writable(own)):
        return Home()
    try:
        return Home(scope_prefix(instance_id), scope_environment() | {ASKED_VARIABLE: "1"})
    except Unavailable as error:
        return Home(why_not=error.what)


def own_folder(mounts: Mounts) -> Path | None:
    """The cgroup v2 folder this process is in."""
    line = cgroup_line("self")
    return mounts.v2.locate(line) if mounts.v2 is not None and line is not None else None


def scope_of(folder: Path) -> Path | None:
    """The scope of ours that ``folder`` is or lies in."""
    return next((f for f in (folder, *folder.parents) if _SCOPE.match(f.name)), None)


def is_writable(folder: Path) -> bool:
    """Whether groups can be made in it and processes moved there, as far as permissions tell."""
    return os.access(folder, os.W_OK) and os.access(folder / "cgroup.procs", os.W_OK)


def settle_in_scope() -> str:
    """Moves this process out of the way in its scope: a group that holds processes can hand no controller down (cgroup-v2.rst).

    Where it went, or empty: not in a scope of ours, or refused.
    """
    own = own_folder(find_mounts())
    scope = scope_of(own) if own is not None else None
    if scope is None or own != scope:
        return ""
    control = scope / "control"
    try:
        control.mkdir(exist_ok=True)
        (control / "cgroup.procs").write_text("0")
    except OSError:
        return ""
    return str(control)


# --- systemd ----------------------------------------------------------------------------------------------------------------


def systemd_run() -> str:
    """Its absolute path. Unavailable when it is not installed."""
    for place in SYSTEMD_RUN:
        if os.access(place, os.X_OK):
            return place
    raise Unavailable("systemd-run is not installed", "Install systemd.")


def scope_environment() -> dict[str, str]:
    """What systemd-run needs to find the user's systemd. Unavailable when there is none to be found."""
    named = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = Path(named if named.startswith("/") else f"/run/user/{os.geteuid()}")
    if not any((folder / name).is_socket() for name in ("systemd/private", "bus")):
        raise Unavailable(f"no user systemd: no socket of one in {folder}", "Log in through systemd, or loginctl enable-linger.")
    found = {"XDG_RUNTIME_DIR": str(folder)}
    if (folder / "bus").is_socket():
        found["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={folder}/bus"
    return found


def scope_prefix(instance_id: str) -> tuple[str, ...]:
    """The words that start a command in a delegated scope of its own; they worked just now. Unavailable with what systemd said."""
    program, environment, said = systemd_run(), scope_environment(), ""
    for properties in _PROPERTIES:
        said = _try(_words(program, instance_id, properties), ("/bin/true",), environment)[1]
        if not said:
            return _words(program, instance_id, properties)
    raise Unavailable(f"systemd-run --user --scope: {said}", "loginctl enable-linger, or log in through systemd.")


def _words(program: str, instance_id: str, properties: tuple[str, ...]) -> tuple[str, ...]:
    unit = f"watchfloor-{instance_id}-{secrets.token_hex(3)}.scope"
    options = [word for name in properties for word in ("-p", name)]
    description = f"--description=Watchfloor instance {instance_id}"
    return (program, "--user", "--scope", "--quiet", "--collect", f"--unit={unit}", description, *options, "--")


def _try(prefix: tuple[str, ...], command: tuple[str, ...], environment: dict[str, str]) -> tuple[str, str]:
    """(what the command printed, why it failed or empty)."""
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", **environment}
    try:
        done = subprocess.run(
            [*prefix, *command], env=env, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=TRY_S, check=False
        )
    except subprocess.TimeoutExpired:
        return "", f"no answer within {TRY_S:g} s"
    except OSError as error:
        return "", error.strerror or str(error)
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return done.stdout.decode(errors="replace"), "" if done.returncode == 0 else (said[-1] if said else f"exit {done.returncode}")[:300]


# --- trying a cgroup --------------------------------------------------------------------------------------------------------


def try_folder(parent: Path) -> str:
    """Makes a group in ``parent``, has a process enter it, kills it by cgroup.kill and sees it empty. Why that failed, or empty."""
    folder = parent / f"watchfloor-trial-{secrets.token_hex(4)}"
    process: subprocess.Popen[bytes] | None = None
    leaf: Leaf | None = None
    try:
        folder.mkdir()
        leaf = Leaf(folder)
        if not leaf.can_kill:
            return f"{folder.parent}: no cgroup.kill (Linux 5.14 has it)"
        enter = 'echo 0 > "$1/cgroup.procs" || exit 1; echo in; exec /bin/sleep 60'
        process = subprocess.Popen(
            ["/bin/sh", "-c", enter, "sh", str(folder)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert process.stdout is not None
        if process.stdout.readline() != b"in\n" or process.pid not in leaf.pids():
            return f"{folder.parent}: a process cannot be moved into a group of it"
        return _kill_and_look(leaf)
    except OSError as error:
        return f"{folder.parent}: {error.strerror or error}"
    finally:
        if process is not None:
            process.kill()  # our own child, not yet reaped
            process.communicate()
        if leaf is not None:
            leaf.close()
        with contextlib.suppress(OSError):
            folder.rmdir()


def _kill_and_look(leaf: Leaf) -> str:
    answer = leaf.kill()
    deadline = time.monotonic() + TRY_S
    while answer == "sent" and leaf.is_populated():
        if time.monotonic() > deadline:
            return f"{leaf.path.parent}: still populated {TRY_S:g} s after cgroup.kill"
        time.sleep(0.005)
    return "" if answer == "sent" else f"{leaf.path.parent}: {answer}"


def find_cgroup(instance_id: str) -> Finding:
    """Whether an instance started here would have a cgroup tree that can be killed, by which way, and what else would give one."""
    mounts = find_mounts()
    if mounts.v2 is None:
        return Finding(False, "no cgroup v2 is mounted", ("mount one (mount -t cgroup2 none /sys/fs/cgroup), or boot with systemd", _ROOT))
    if os.geteuid() == 0:
        why = try_folder(mounts.v2.point)
        return Finding(
            not why, why or f"own tree below {mounts.v2.point}: made, entered, killed, seen empty", () if not why else _kernel(why)
        )
    return _find_as_user(instance_id, mounts)


def _find_as_user(instance_id: str, mounts: Mounts) -> Finding:
    home = find_home(instance_id, mounts)
    if home.prefix:
        environment = dict(home.environment, PYTHONPATH=str(Path(next(iter(console.__path__))).parent))
        printed, said = _try(home.prefix, (sys.executable, "-P", "-s", "-B", "-m", "console.killswitch.kernel.delegation"), environment)
        why = said or _read(printed)
        if not why:
            return Finding(True, "systemd user scope (Delegate=yes): made, entered, killed, seen empty")
        home = Home(why_not=f"systemd user scope: {why}")
    own = own_folder(mounts)
    base = own if own is None or scope_of(own) is None else scope_of(own)
    why = "its own cgroup lies outside the mount" if base is None else try_folder(base)
    if not why:
        return Finding(True, f"delegated cgroup {base}: made, entered, killed, seen empty")
    return Finding(False, "; ".join(filter(None, (why, home.why_not))), _raises(home, why))


def _read(printed: str) -> str:
    try:
        return str(json.loads(printed)["why"])
    except (ValueError, KeyError, TypeError):
        return "the trial said nothing"


def _kernel(why: str) -> tuple[str, ...]:
    return ("Linux 5.14 or newer, for cgroup.kill",) if "5.14" in why else ("give it CAP_SYS_ADMIN and a writable cgroup v2 mount",)


def _raises(home: Home, why: str) -> tuple[str, ...]:
    ways = list(_kernel(why)) if "5.14" in why else []
    if "not installed" in home.why_not:
        ways.append("install systemd (apt install systemd)")
    ways.append(
        "a systemd user session: log in through systemd, or loginctl enable-linger USER (as root) and XDG_RUNTIME_DIR=/run/user/UID"
    )
    return (*ways, "start it in a cgroup delegated to you (Delegate=yes)", _ROOT)


def main() -> int:
    """Tries the cgroup this runs in; one JSON line. For ``find_cgroup``, inside the scope."""
    own = own_folder(find_mounts())
    print(json.dumps({"folder": str(own), "why": try_folder(own) if own is not None else "no cgroup v2 is mounted"}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
