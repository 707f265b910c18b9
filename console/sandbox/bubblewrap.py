"""``--sandbox bubblewrap``: an agent in namespaces of its own that sees read-only system folders and its workspace, no more.

bwrap runs as the agent's uid, never as root: with root it would keep every capability
(docs/decisions/0006-loopback-only-sandboxes.md). Its parent is our shim, which outlives the supervisor;
--die-with-parent therefore ties the sandbox to the shim alone.
"""

from __future__ import annotations

import contextlib
import glob
import itertools
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path

from console.domain.agent import AgentId, SandboxKind
from console.domain.errors import ConsoleError, Unavailable
from console.domain.ids import ControlLevel
from console.domain.network import STRICTEST
from console.domain.process.failpoints import failpoint
from console.sandbox import launcher, seccomp, session
from console.sandbox.following import Followed
from console.sandbox.hardening import TMP_BYTES, Mode
from console.sandbox.interface import PREPARE_S, Availability, LaunchSpec, Prepared, Ticket
from console.sandbox.processes import start_ticks
from console.sandbox.program_access import check_program

PLACES = ("/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap")
"""Where bwrap may be; PATH is never asked."""
SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# What programs need to resolve accounts, names and certificates, and what packages put there for the programs of /usr: those of Java and
# Maven do not run without it. All else of /etc may hold the host's secrets; Maven's settings.xml, say, has the passwords of servers.
SYSTEM_FILES = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/fonts",
    "/etc/group",
    "/etc/hosts",
    "/etc/java*",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf*",
    "/etc/localtime",
    "/etc/lsb-release",
    "/etc/maven/logging",
    "/etc/maven/m2.conf",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/cert*",
    "/etc/pki/tls/openssl.cnf",
    "/etc/protocols",
    "/etc/python3*",
    "/etc/services",
    "/etc/ssl/cert*",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
    "/var/lib/ca-certificates",
)
"""With ``*`` as glob has it."""
PYTHON_INSIDE = Path("/usr/bin/python3")
LOOK_INSIDE = "/.watchfloor/look.py"
"""Where the shim puts look.py."""
_PROBE_AGAIN_S = 60.0
_REMEDY = "Install bubblewrap (apt install bubblewrap), or launch with --sandbox docker."


def program() -> str:
    """bwrap's path. Raises Unavailable when it is not installed."""
    for place in PLACES:
        if os.access(place, os.X_OK):
            return place
    raise Unavailable("bubblewrap is not installed.", _REMEDY)


def contained_options(spec: LaunchSpec) -> tuple[str, ...]:
    """bwrap's options for a contained agent."""
    options = ["--unshare-all"]
    if not spec.network_mode.is_restricted:
        options.append("--share-net")
    # --new-session: without it a program inside could push input into the terminal that started it (TIOCSTI, bwrap(1)).
    options += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox"]
    for folder in map(Path, SYSTEM_FOLDERS):
        if folder.is_symlink():
            # On merged systems /bin is a link into /usr: bound as a folder it would hide that, and links below it would break.
            options += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            options += ["--ro-bind", str(folder), str(folder)]
    for file in itertools.chain.from_iterable(map(glob.glob, SYSTEM_FILES)):
        options += ["--ro-bind-try", file, file]
    if not spec.network_mode.is_restricted:
        options += ["--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf"]
    # --dev brings a small set of safe devices; it is remounted read-only afterwards, so that nothing is added to it.
    options += ["--proc", "/proc", "--dev", "/dev", *_scratch(), "--remount-ro", "/dev"]
    return (*options, *_own_things(spec), "--remount-ro", "/", *_start(spec))


def _scratch() -> list[str]:
    """/tmp and /dev/shm. As root the shim's private view has a bounded tmpfs without programs at /dev/shm: bwrap itself can make none."""
    if os.geteuid() == 0:
        return ["--bind", "/dev/shm", "/tmp", "--bind", "/dev/shm", "/dev/shm"]  # noqa: S108 - the sandbox's own
    made = ["--size", str(TMP_BYTES), "--perms", "1777", "--tmpfs"]
    return [*made, "/tmp", *made, "/dev/shm"]  # noqa: S108


def looker() -> tuple[str, ...]:
    """The command inside that looks at the sandbox; empty without a Python there."""
    real = str(PYTHON_INSIDE.resolve())
    inside = os.access(real, os.X_OK) and any(real.startswith(folder + "/") for folder in SYSTEM_FOLDERS)
    return (str(PYTHON_INSIDE), "-I", "-S", "-X", "utf8", LOOK_INSIDE) if inside else ()


def host_view_options(spec: LaunchSpec) -> tuple[str, ...]:
    """bwrap's options for a managed agent of an ordinary user: the machine's files, but own processes and masks."""
    options = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--cap-drop", "ALL"]
    if spec.network_mode.is_restricted:
        options.append("--unshare-net")
    options += ["--dev-bind", "/", "/", "--proc", "/proc"]
    masked = [str(path.resolve()) for path in (Path("/sys/fs/cgroup"), *session.folders(), *spec.hide) if path.is_dir()]
    for folder in masked:
        options += ["--tmpfs", folder]
    # A socket or a cookie of the operator's session is a way out of any network mode, so it reads as empty.
    for file in session.files():
        options += ["--ro-bind", "/dev/null", str(file)]
    options += _own_things(spec)
    # Only now: the agent's own folder may lie below a mask, and its mount point is made in there.
    for folder in masked:
        options += ["--remount-ro", folder]
    return (*options, *_start(spec))


def _own_things(spec: LaunchSpec) -> list[str]:
    options: list[str] = []
    for source, target, read_only in launcher.keeps(spec):
        options += ["--ro-bind" if read_only else "--bind", source, target]
    return options


def _start(spec: LaunchSpec) -> list[str]:
    options = ["--chdir", str(spec.workspace)]
    for name, value in spec.env.items():
        options += ["--setenv", name, value]
    return options


class Bubblewrap(Followed):
    """Contained agents without a container engine."""

    kind = SandboxKind.BUBBLEWRAP
    control_level = ControlLevel.CONTAINED
    mode = Mode.BUBBLEWRAP

    def available(self) -> Availability:
        """Whether a sandbox can be made here, found out by making one."""
        return probe()

    def prepare(self, spec: LaunchSpec, ticket: Ticket) -> Prepared:
        """A sandbox that waits at its gate. Raises ConsoleError, and then nothing of it is left."""
        launched = _start_contained(spec, ticket)
        self._hold(spec.agent_id, launched)
        notes = [] if ticket.leaf else ["It has no cgroup of its own; its PID namespace ends with its init."]
        if not spec.network_mode.is_restricted:
            notes.append("FULL: it shares the machine's network, loopback services included.")
        return Prepared(
            agent_id=spec.agent_id,
            pid=launched.child,
            start_ticks=start_ticks(launched.child),
            notes=tuple(notes),
            netns=spec.network_mode.is_restricted,
            userns=True,
            mask=True,
            control_level=ControlLevel.CONTAINED,
        )


def _start_contained(spec: LaunchSpec, ticket: Ticket) -> launcher.Launched:
    spec.check()
    check_program(spec, SYSTEM_FOLDERS)
    is_root = os.geteuid() == 0
    look = looker()
    plan = launcher.Plan(
        # As root a private view comes first: the agent's uid must pass the folders above its workspace to bind it.
        mount_namespace=is_root,
        drop=is_root,
        wrap=(program(),),
        wrap_options=contained_options(spec),
        seccomp=seccomp.program(strict=True),
        looker=look,
        look_inside=bool(look),
    )
    return launcher.start(spec, ticket, plan)


_probe_lock = threading.Lock()
_probed: list[tuple[float, Availability]] = []
_trial_folders: list[Path] = []
"""Where trials lie; empty: among the temporary files."""


def try_in(folder: Path) -> None:
    """Trials lie in ``folder`` from now on; what a supervisor left there that was killed in the middle of one goes.

    Only one process at a time names the same folder. A folder that cannot be used is one reason less to try: the trial says it.
    """
    with _probe_lock, contextlib.suppress(OSError):
        folder.mkdir(mode=0o711, exist_ok=True)
        for left in folder.iterdir():
            shutil.rmtree(left, ignore_errors=True)
    _trial_folders[:] = [folder]


def probe() -> Availability:
    """Whether bwrap works for us; a good answer is kept, a bad one for a minute."""
    with _probe_lock:
        # A bad answer may be a matter of load or of a setting that was just changed, so it is tried again after a minute.
        if _probed and (_probed[0][1].ok or time.monotonic() - _probed[0][0] < _PROBE_AGAIN_S):
            return _probed[0][1]
        result = _try_once()
        _probed[:] = [(time.monotonic(), result)]
        return result


def _try_once() -> Availability:
    try:
        path = program()
        with tempfile.TemporaryDirectory(prefix="watchfloor-probe-", dir=_trial_folders[0] if _trial_folders else None) as folder:
            spec = _probe_spec(Path(folder).resolve())
            failpoint("trial.begun")
            launched = _start_contained(spec, Ticket(""))
            try:
                launcher.open_gate(launched, lambda facts: None)
                code = launcher.wait_end(launched, PREPARE_S)
            finally:
                launcher.end(launched)
                launched.close()
            words = spec.output.read_text(errors="replace").strip()
    except ConsoleError as error:
        return Availability(False, error.what.rstrip("."), error.remedy or _REMEDY)
    except OSError as error:
        return Availability(False, f"it cannot be tried: {error.strerror}", _REMEDY)
    if code:
        return Availability(False, f"{path} cannot make a sandbox here: {words[-300:]}", _REMEDY)
    return Availability(True, f"{path} makes sandboxes here.")


def _probe_spec(folder: Path) -> LaunchSpec:
    workspace, door = folder / "workspace", folder / "door"
    workspace.mkdir(mode=0o755)
    door.touch()
    if os.geteuid() == 0:
        uid = gid = 65534
    else:
        uid, gid = os.geteuid(), os.getegid()
    return LaunchSpec(AgentId("probe"), ("/bin/true",), {}, workspace, door, folder / "out", STRICTEST, uid=uid, gid=gid)
