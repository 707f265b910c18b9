"""Starting the guard, and starting it again: no guard, no launches."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from console.killswitch.spawn import start_guard
from console.settings.options import Options
from console.settings.places import Places
from console.supervisor.parts import Parts


def ensure_guard(places: Places, options: Options) -> int:
    """Pid of this instance's guard, started when none answers. Blocks until it is ready."""
    if places.is_default:  # there before any agent is: a folder that does not exist cannot be hidden from one
        with suppress(OSError):
            places.passphrase_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
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


def revive_guard(parts: Parts) -> int:
    """A new guard takes over from the registry on disk."""
    return ensure_guard(parts.places, parts.options)
