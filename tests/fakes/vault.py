"""Five secrets of other programs for a rotation plan: what is accepted now is a file per secret.

A program and a little server change and check them. Triggers are files: ``die-before-NAME``, ``die-after-NAME`` and ``die-verify-NAME``
end the supervisor (whoever runs the program, or asks the server) with SIGKILL, once; ``fail-NAME`` makes a change fail and say too much.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

NAMES = ("deploy", "webhook", "cloud", "mail", "export")
_PROGRAM = """#!{python} -IS
import base64, json, os, signal, sys, urllib.parse
what, name, folder = sys.argv[1], sys.argv[2], {folder!r}

def die(when):
    trigger = f"{{folder}}/die-{{when}}-{{name}}"
    if os.path.exists(trigger):
        os.unlink(trigger)
        os.kill(os.getppid(), {sigkill})

def seen(*values):
    # Everybody's command line and environment, as root sees them.
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for part in ("cmdline", "environ"):
            try:
                text = open(f"/proc/{{pid}}/{{part}}", "rb").read()
            except OSError:
                continue
            if any(value and value.encode() in text for value in values):
                open(f"{{folder}}/seen-in-proc", "a").write(f"{{pid}} {{part}} {{name}}\\n")

if what == "verify":
    die("verify")
    value = sys.stdin.readline().rstrip("\\n")
    seen(value)
    sys.exit(0 if value == open(f"{{folder}}/now-{{name}}").read() else 1)
given = json.load(sys.stdin)
old, new = given["old"], given["new"]
seen(old, new)
die("before")
if os.path.exists(f"{{folder}}/fail-{{name}}"):
    os.unlink(f"{{folder}}/fail-{{name}}")
    b64 = base64.b64encode(("user:" + new).encode()).decode()
    sys.exit(f"cannot change {{old}} to {{new}}: Basic {{b64}}, ?key={{urllib.parse.quote(old)}}, {{new.encode().hex()}}")
if open(f"{{folder}}/now-{{name}}").read() not in (old, new):
    sys.exit("the old value is wrong")
open(f"{{folder}}/now-{{name}}", "w").write(new)
die("after")
"""


class Vault:
    """``with Vault(folder) as vault: vault.write_plan(state_dir)``"""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.supervisor_pid = 0
        self.old = {name: f"old-value-of-{name}-{os.urandom(6).hex()}" for name in NAMES}
        folder.mkdir(mode=0o700)
        for name, value in self.old.items():
            self._now(name).write_text(value)
        self.program = folder / "vault"
        self.program.write_text(_PROGRAM.format(python=sys.executable, folder=str(folder), sigkill=int(signal.SIGKILL)))
        self.program.chmod(0o700)

    def _now(self, name: str) -> Path:
        return self.folder / f"now-{name}"

    def now(self, name: str) -> str:
        """The value that is accepted now."""
        return self._now(name).read_text()

    def arm(self, name: str) -> None:
        """Arms one, once."""
        (self.folder / name).touch()

    def __enter__(self) -> Vault:
        vault = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                trigger = vault.folder / "die-before-cloud"
                if trigger.exists():
                    trigger.unlink()
                    os.kill(vault.supervisor_pid, signal.SIGKILL)
                good = vault.now("cloud") in (body["old"], body["new"])
                if good:
                    vault._now("cloud").write_text(body["new"])
                self._say(200 if good else 403)

            def do_GET(self) -> None:
                self._say(200 if self.headers["Authorization"] == f"Bearer {vault.now('cloud')}" else 401)

            def _say(self, status: int) -> None:
                try:
                    self.send_response(status)
                    self.end_headers()
                except OSError:
                    pass  # it was killed while it waited

            def log_message(self, *_: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def plan(self) -> dict[str, Any]:
        """One item of each kind but the keyring's, three of them programs' (mail: a file that its program reads)."""
        url = f"http://127.0.0.1:{self._server.server_port}/cloud"
        items: list[dict[str, Any]] = []
        for name in NAMES:
            verify: dict[str, Any] = {"kind": "command", "argv": [str(self.program), "verify", name], "timeout_s": 60.0}
            item: dict[str, Any] = {"kind": "command", "command": {"argv": [str(self.program), "change", name], "timeout_s": 60.0}}
            if name == "cloud":
                item = {"kind": "http", "request": {"url": url, "body": {"old": "{old}", "new": "{new}"}}}
                verify = {"kind": "http", "url": url, "headers": {"Authorization": "Bearer {value}"}}
            if name == "mail":
                item = {"kind": "file", "path": str(self._now(name))}
            items.append({"name": name, "verify": verify, **item})
        return {"schema_version": 1, "items": items}

    def write_plan(self, state_dir: Path) -> None:
        """Puts the plan where the supervisor reads it."""
        path = state_dir / "rotation.json"
        path.write_text(json.dumps(self.plan()))
        path.chmod(0o600)
