"""An instance that serves members of Watchfloor's groups, with a group file of its own, and callers under ids that have no account.

Nothing of this machine's /etc changes: the supervisor sees the file in a mount namespace of its own.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fakes.instance import Instance

UID = 61_234
"""No account has it."""
GROUPS = {"viewer": 61_301, "operator": 61_302, "responder": 61_303, "auditor": 61_304}
OTHER = 61_399
"""A group that gives nothing."""


def group_lines() -> str:
    """A group file with Watchfloor's groups."""
    return "".join(f"watchfloor-{role}:x:{gid}:\n" for role, gid in GROUPS.items())


class HostInstance(Instance):
    """A supervisor with a folder for members' sockets."""

    def __init__(self, state_dir: Path, *options: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="wf-members-"))
        self.folder.chmod(0o755)
        self.group_file = state_dir.parent / "group"
        self.group_file.write_text(group_lines())
        self.mounts = 'mount --bind "$0" /etc/group'
        """What its namespace has in place of this machine's files, in shell; ``$0`` is the group file."""
        super().__init__(state_dir, "--members-dir", str(self.folder), *options)

    @property
    def sock(self) -> Path:
        return self.folder / "operator.sock"

    @property
    def before(self) -> list[str]:
        return ["unshare", "--mount", "sh", "-c", f'{self.mounts} && exec "$@"', str(self.group_file)]

    def __exit__(self, *problem: object) -> None:
        super().__exit__(*problem)
        shutil.rmtree(self.folder)

    def told(self, *words: str, roles: tuple[str, ...], folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        """The command line as an ordinary account runs it: a process of its own that reads no file of the instance."""
        return subprocess.run(self.command(*words, roles=roles, folder=folder), capture_output=True, text=True, timeout=120)

    def command(self, *words: str, roles: tuple[str, ...], folder: Path | None = None) -> list[str]:
        """What ``told`` runs."""
        places = 'mount --bind "$0" /etc/group && mount -t tmpfs none /run && mkdir /run/watchfloor && mount --bind "$1" /run/watchfloor'
        shell = ["sh", "-c", f'{places} && cd "$2" && shift 2 && exec "$@"', str(self.group_file), str(self.folder), str(folder or "/")]
        account = [f"--reuid={UID}", f"--regid={OTHER}", f"--groups={','.join(str(GROUPS[r]) for r in roles) or OTHER}"]
        ask = ["env", "-i", f"PYTHONPATH={self.code}", "setpriv", *account, sys.executable, "-m", "console", *words]
        return ["unshare", "--mount", *shell, *ask]


def as_member(job: Callable[[], Any], *roles: str, uid: int = UID, gid: int | None = None, groups: list[int] | None = None) -> Any:
    """What ``job`` returns in a child process under ``uid`` and the groups of the roles. Its answer is JSON; an error is raised here."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            os.close(read)
            os.setgroups(groups if groups is not None else [OTHER, *(GROUPS[role] for role in roles)])
            os.setresgid(gid or OTHER, gid or OTHER, gid or OTHER)
            os.setresuid(uid, uid, uid)
            os.write(write, json.dumps(job()).encode())
            status = 0
        except BaseException:  # noqa: BLE001 - the test's process must not go on in the child
            os.write(write, traceback.format_exc().encode()[-4000:])
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read()
    _, code = os.waitpid(child, 0)
    assert code == 0, said.decode()
    return json.loads(said)


def asked(sock: Path, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    """One request in raw HTTP: status and answer."""
    connection = http.client.HTTPConnection("watchfloor", timeout=60)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(sock))
    try:
        content = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, content, headers or {})
        except BrokenPipeError:
            pass  # refused at the door
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text.startswith((b"{", b"[")) else text.decode(errors="replace")
    finally:
        connection.close()
