"""Where an instance keeps its state and its sockets. Every verb honours --state-dir, so instances run side by side."""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, overload

from console.domain.errors import ConsoleError, UsageProblem
from console.domain.process.durable import make_folder, replace_file, sync_folder
from console.domain.roles.rights import FOLDER, roles_of
from console.settings.named_folder import real_folder

STATE_DIR_VARIABLE = "WATCHFLOOR_STATE_DIR"
INSTANCE_VARIABLE = "WATCHFLOOR_INSTANCE"
"""``own``: a member of the roles' groups uses an instance of their own, not the host's."""
HOSTS_STATE = Path("/var/lib/watchfloor")
_INSTANCE = re.compile(r"[0-9a-f]{8}")
# sun_path holds 108 bytes with the closing NUL (unix(7)); an agent socket is run/agents/a-xxxxxxxx/agent.sock.
_LONGEST_RUN_DIR = 107 - len("/agents/a-01234567/agent.sock")


@dataclass(frozen=True, slots=True)
class Places:
    """All paths of one instance."""

    state_dir: Path
    run_dir: Path
    """Sockets; 0711 so that an agent under another uid can reach its own socket and list nothing."""
    instance_id: str
    """8 hexadecimal characters; part of every cgroup, container, network and keyring entry."""
    is_default: bool
    """False for any folder but the default: discovery is confined and observed agents are never signalled."""
    shared_workspaces: Path | None = None
    """A folder of workspaces that several supervisors share (``workspaces.root``); None: the instance's own."""
    members_dir: Path | None = None
    """Where the sockets for members of the roles' groups are (domain/roles); None: this instance serves no other account."""

    by_role: bool = False
    """The host's instance, used by a member of the roles' groups: its sockets are served, and none of its files can be read."""

    @property
    def operator_sock(self) -> Path:
        return self.run_dir / "operator.sock"

    @property
    def guard_sock(self) -> Path:
        return self.run_dir / "guard.sock"

    @property
    def hooks_sock(self) -> Path:
        """Where hooks of programs that are only seen ask."""
        return self.run_dir / "hooks.sock"

    @property
    def guard_supervisor_sock(self) -> Path:
        return self.run_dir / "guard-supervisor.sock"

    @property
    def agents_dir(self) -> Path:
        """One folder per agent with its socket: ``<agent id>/agent.sock``."""
        return self.run_dir / "agents"

    @property
    def guard_dir(self) -> Path:
        return self.state_dir / "guard"

    @property
    def ledger_db(self) -> Path:
        return self.state_dir / "ledger.db"

    @property
    def activity_db(self) -> Path:
        return self.state_dir / "activity.db"

    @property
    def audit_db(self) -> Path:
        return self.state_dir / "audit.db"

    @property
    def rollback_dir(self) -> Path:
        return self.state_dir / "rollback"

    @property
    def workspaces_dir(self) -> Path:
        return self.shared_workspaces or self.state_dir / "workspaces"

    @property
    def hidden(self) -> tuple[Path, ...]:
        """What no agent sees of it: everything but what is bound back into its sandbox."""
        shared = (self.shared_workspaces,) if self.shared_workspaces is not None else ()
        members = (self.members_dir,) if self.members_dir is not None else ()
        return (self.state_dir, self.run_dir, self.passphrase_file.parent, *shared, *members)

    @property
    def egress_dir(self) -> Path:
        return self.state_dir / "egress"

    @property
    def receipts_dir(self) -> Path:
        return self.state_dir / "receipts"

    @property
    def output_dir(self) -> Path:
        """What agents wrote to stdout and stderr: ``<agent id>.log``."""
        return self.state_dir / "output"

    @property
    def keys_dir(self) -> Path:
        return self.state_dir / "keys"

    @property
    def passphrase_file(self) -> Path:
        """The hash of the operator's passphrase for rearm: with the configuration, never beside the latch."""
        if self.is_default and os.geteuid() == 0:
            return Path("/etc/watchfloor/passphrase")
        import platformdirs

        return real_folder(Path(platformdirs.user_config_dir("watchfloor"))) / self.instance_id / "passphrase"

    @property
    def hooks_dir(self) -> Path:
        """The hook that programs run, and what their settings held before it."""
        return self.state_dir / "hooks"

    @property
    def policy_file(self) -> Path:
        """The rules in force; without one the product's own."""
        return self.state_dir / "policy.json"

    @property
    def settings_file(self) -> Path:
        return self.state_dir / "settings.json"

    @property
    def supervisor_lock(self) -> Path:
        return self.state_dir / "supervisor.lock"

    @property
    def log_file(self) -> Path:
        return self.state_dir / "supervisor.log"


def is_member() -> bool:
    """Whether this account is in a group of a role, and the host's instance serves such groups."""
    if os.geteuid() == 0:
        return False
    try:
        is_served = any((FOLDER / name).is_socket() for name in ("operator.sock", "guard.sock"))
    except OSError:  # the folder lets members in alone
        return False
    return is_served and bool(roles_of(os.getgroups()))


def default_state_dir() -> Path:
    """/var/lib/watchfloor for root and for members of the roles' groups, else the XDG state directory."""
    if os.geteuid() == 0 or (os.environ.get(INSTANCE_VARIABLE) != "own" and is_member()):
        return HOSTS_STATE
    # "If an implementation encounters a relative path [...] it should consider the path invalid and ignore it" (XDG Base Directory
    # Specification). platformdirs says the same, and takes as long to import as Python to start.
    named = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (named if named.is_absolute() else Path("~/.local/state").expanduser()) / "watchfloor"


def choose_state_dir(option: str | None) -> tuple[Path, bool]:
    """Return (state directory, whether it is the default one): --state-dir, else the variable, else the default place. No link leads to it.

    Raises UsageProblem for an invalid name, and for a link that another account made.
    """
    named = option or os.environ.get(STATE_DIR_VARIABLE, "")
    if not named:
        return real_folder(default_state_dir()), True
    if "\0" in named:
        raise UsageProblem("The state directory's name contains a NUL character.", "Name a folder.")
    folder = real_folder(Path(named))
    return folder, _is_the_default(folder)


def _is_the_default(folder: Path) -> bool:
    """Whether a folder that was named is the default one: a verb that starts a supervisor names it, and so do remedies on the screen."""
    try:
        return folder == real_folder(default_state_dir())
    except (UsageProblem, RuntimeError):  # a link of another account, or an account without a home
        return False


@overload
def find_places(option: str | None, *, create: Literal[True]) -> Places: ...
@overload
def find_places(option: str | None, *, create: bool) -> Places | None: ...
def find_places(option: str | None, *, create: bool) -> Places | None:
    """The places of an existing instance; with ``create`` a new instance is made. None: no instance there yet.

    Raises ConsoleError when the folder cannot be used, with what to do.
    """
    state_dir, is_default = choose_state_dir(option)
    if state_dir == HOSTS_STATE and is_member():
        return Places(state_dir, FOLDER, _known_instance(state_dir), is_default, by_role=True)
    marker = state_dir / "instance.json"
    try:
        if not marker.exists() and not (state_dir / "guard").is_dir():
            if not create:
                return None
            _make_instance(state_dir, marker)
        instance_id = _read_instance(marker)
    except OSError as error:
        raise ConsoleError(
            f"The state directory {state_dir} cannot be used: {error.strerror or error}.",
            "Choose a folder you can write with --state-dir, or fix its permissions.",
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        # A stop must not fail for want of a name that stands elsewhere too: the guard's registry holds it.
        instance_id = _from_registry(state_dir)
        if not instance_id:
            raise ConsoleError(f"{marker} is damaged.", "Restore it from a backup, or use a new --state-dir.") from error
    return Places(state_dir, _run_dir(state_dir, instance_id), instance_id, is_default)


def _known_instance(state_dir: Path) -> str:
    """The id; empty when it cannot be read."""
    try:
        return _read_instance(state_dir / "instance.json")
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _read_instance(marker: Path) -> str:
    """The id; ValueError, KeyError or TypeError when the file is missing or not one of ours."""
    try:
        text = marker.read_text()
    except FileNotFoundError as error:
        raise ValueError("missing") from error
    instance_id = str(json.loads(text)["instance_id"])
    if not _INSTANCE.fullmatch(instance_id):
        raise ValueError("instance id")
    return instance_id


def _from_registry(state_dir: Path) -> str:
    """The id in the name of the cgroup tree that the guard's registry gives, or nothing."""
    try:
        found = re.search(r"/watchfloor-([0-9a-f]{8})\"", (state_dir / "guard" / "registry.json").read_text())
    except (OSError, UnicodeDecodeError):
        return ""
    return found[1] if found else ""


def _make_instance(state_dir: Path, marker: Path) -> None:
    make_folder(state_dir, 0o711)
    state_dir.chmod(0o711)
    text = json.dumps({"instance_id": secrets.token_hex(4), "created_at": time.time()})
    draft = marker.with_name(f".instance-{secrets.token_hex(4)}")
    replace_file(draft, text.encode())  # on disk before it has its name: an instance without its id could not be stopped
    try:
        os.link(draft, marker)  # two first starts at once: exactly one id wins
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    sync_folder(state_dir)


def _run_dir(state_dir: Path, instance_id: str) -> Path:
    inside = state_dir / "run"
    if len(os.fsencode(inside)) <= _LONGEST_RUN_DIR:
        return inside
    import tempfile

    return real_folder(Path(tempfile.gettempdir())) / f"watchfloor-{os.geteuid()}-{instance_id}"


def make_run_dir(places: Places) -> None:
    """Create the socket folders. Refuse one that belongs to another account (a planted folder in /tmp)."""
    for folder in (places.run_dir, places.agents_dir):
        folder.mkdir(parents=True, exist_ok=True, mode=0o711)
        seen = folder.lstat()
        if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid():
            raise ConsoleError(f"{folder} belongs to another account.", "Remove it, or use a shorter --state-dir.")
        folder.chmod(0o711)
