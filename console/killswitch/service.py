"""``python -m console.killswitch.service``: the guard of the host's own instance, with the arguments that its settings ask for.

The supervisor starts a guard of its own only where none answers; under systemd the guard is there first.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
import time
from pathlib import Path
from typing import Any

from console.domain.roles.rights import FOLDER
from console.killswitch.__main__ import main as run_guard

STATE_DIR = Path("/var/lib/watchfloor")
PASSPHRASE = Path("/etc/watchfloor/passphrase")
ENGINE = "/var/run/docker.sock"
SUPERVISOR_UID = 0
"""The supervisor's service starts agents under other accounts, so it runs as root."""


def arguments(state_dir: Path) -> list[str]:
    """What the guard is started with. OSError when the instance's file can be neither read nor made; ValueError when it is damaged."""
    kept = settings(state_dir)
    kill, remote, agents = (_section(kept, name) for name in ("kill", "remote", "agents"))
    words = [f"--state-dir={state_dir}", f"--run-dir={state_dir / 'run'}", f"--instance={instance(state_dir)}"]
    words += [f"--engine-socket={kept.get('engine_socket') or ENGINE}", f"--passphrase-file={PASSPHRASE}"]
    words += [f"--supervisor-uid={SUPERVISOR_UID}", "--orphan-s=inf"]  # a service does not end because nobody needs it now
    words += [f"--heartbeat-s={kept['heartbeat_s']}"] if _is_number(kept.get("heartbeat_s")) else []
    words += [f"--return-watch-s={kill['return_watch_s']}"] if _is_number(kill.get("return_watch_s")) else []
    words += [f"--members-dir={FOLDER}"]
    words += [f"--agents-uid={agents['uid']}"] if type(agents.get("uid")) is int else []
    words += ["--lease"] if remote.get("bucket") and remote.get("lease", "stop") == "stop" else []
    return words


def settings(state_dir: Path) -> dict[str, Any]:
    """What was in force at the supervisor's last good start, with the administrator's files; before the first one what settings.json says.

    A broken file reads as empty and is named on stderr: without a guard nothing could be stopped.
    """
    for file in (state_dir / "settings-in-force.json", state_dir / "settings.json"):
        try:
            kept = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            print(f"{file} cannot be used, the guard starts with its defaults: {error}", file=sys.stderr)
            return {}
        return kept if isinstance(kept, dict) else {}
    return {}


def instance(state_dir: Path) -> str:
    """The instance's id; made at the first start, as the supervisor would (settings/places.py)."""
    file = state_dir / "instance.json"
    if not file.exists() and not (state_dir / "guard" / "registry.json").exists():
        draft = state_dir / f".instance-{secrets.token_hex(4)}"
        with draft.open("x", encoding="utf-8") as opened:
            json.dump({"instance_id": secrets.token_hex(4), "created_at": time.time()}, opened)
            opened.flush()
            os.fsync(opened.fileno())
        try:
            os.link(draft, file)
        except FileExistsError:
            pass  # the supervisor was faster
        finally:
            draft.unlink()
    file.chmod(0o644)  # members of the roles' groups name it too, and it is no secret
    named = json.loads(file.read_text(encoding="utf-8"))["instance_id"]
    if not isinstance(named, str) or not re.fullmatch(r"[0-9a-f]{8}", named):
        raise ValueError(f"{file} holds no instance id")
    return named


def _section(kept: dict[str, Any], name: str) -> dict[str, Any]:
    found = kept.get(name)
    return found if isinstance(found, dict) else {}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def main() -> int:
    """Exit codes are the guard's; 1 with the reason when the state directory cannot be used."""
    try:
        words = arguments(STATE_DIR)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"The guard cannot start: {error}. Restore {STATE_DIR / 'instance.json'} from a backup.", file=sys.stderr)
        return 1
    return run_guard(words)


if __name__ == "__main__":
    sys.exit(main())
