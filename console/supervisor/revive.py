"""Starting the guard, and starting it again: no guard, no launches."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from console.domain.errors import Unavailable
from console.killswitch.client.start import LOOK_S, START_S, guard_pid, start_guard
from console.settings.options import Options
from console.settings.places import Places

SERVICE_VARIABLE = "WATCHFLOOR_GUARD_SERVICE"
"""Set by watchfloor.service: systemd starts the guard, and a second one must not take its place."""


def ensure_guard(places: Places, options: Options) -> int:
    """Pid of this instance's guard, started when none answers. Blocks until it is ready."""
    if service := os.environ.get(SERVICE_VARIABLE, ""):
        return wait_for_service(places, service)
    if places.is_default:  # there before any agent is: a folder that does not exist cannot be hidden from one
        with suppress(OSError):
            # Root's is /etc/watchfloor, whose settings every account reads. The file in it has a mode of its own.
            places.passphrase_file.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    return start_guard(
        places.state_dir,
        places.run_dir,
        places.instance_id,
        engine_socket=Path(options.engine()),
        lease=bool(options.remote.bucket) and options.remote.lease == "stop",
        heartbeat_s=options.heartbeat_s,
        return_watch_s=options.kill.return_watch_s,
        passphrase_file=places.passphrase_file,
    )


def wait_for_service(places: Places, service: str, timeout_s: float = START_S) -> int:
    """Pid of the guard that systemd runs. Raises Unavailable when none answers in time."""
    until = time.monotonic() + timeout_s
    while (pid := guard_pid(places.run_dir)) is None:
        if time.monotonic() > until:
            raise Unavailable(f"The guard does not answer; {service} runs it.", f"systemctl restart {service}; journalctl -u {service}")
        time.sleep(LOOK_S)
    return pid
