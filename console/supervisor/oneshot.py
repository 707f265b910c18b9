"""Verbs that need machinery but no daemon: keys, release, watch, doctor. Run as ``python -m console.supervisor oneshot VERB ...``."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from console.credentials.keyring_store import Store
from console.domain.errors import UsageProblem
from console.egress.service import Egress
from console.killswitch.cgroups import find_mounts
from console.settings.options import Options, load_options
from console.settings.places import Places, find_places
from console.supervisor import signing
from console.supervisor.adapters import sandboxes_of
from console.supervisor.rearm_signing import sign_rearm, sign_rearm_arguments
from console.supervisor.signing import show
from console.supervisor.watch import watch, watch_arguments


def oneshot(what: str, rest: list[str]) -> int:
    """Runs one verb; prints words, or one JSON object with --json."""
    verbs = {"keys": signing.keys, "release": signing.release, "doctor": _doctor, "watch": watch, "sign-rearm": sign_rearm}
    if what not in verbs:
        raise UsageProblem(f"There is no oneshot verb {what[:40]!r}.", f"Verbs: {', '.join(verbs)}.")
    parser = argparse.ArgumentParser(prog=f"watchfloor {what}")
    parser.add_argument("--state-dir")
    parser.add_argument("--json", action="store_true")
    arguments = {
        "keys": signing.keys_arguments,
        "release": signing.release_arguments,
        "watch": watch_arguments,
        "sign-rearm": sign_rearm_arguments,
    }
    if what in arguments:
        arguments[what](parser)
    given = parser.parse_args(rest)
    places = find_places(given.state_dir, create=what not in ("doctor", "watch"))
    return verbs[what](places, given)


def _doctor(places: Places | None, given: argparse.Namespace) -> int:
    options = load_options(places.settings_file) if places is not None else Options()
    rows: list[tuple[str, str]] = []
    scratch = Path(places.state_dir) if places is not None else Path("/nonexistent")
    for kind, sandbox in sandboxes_of(options).items():
        ready = sandbox.available()
        name = "managed" if kind.value == "none" else kind.value
        rows.append((name, "available" if ready.ok else f"not available, because {ready.reason.rstrip('.')}. {ready.remedy}"))
    envoy = Egress(scratch / "egress", scratch / "run", lambda record: None).available()
    rows.append(("envoy", "available" if envoy.ok else f"not available, because {envoy.reason.rstrip('.')}. {envoy.remedy}"))
    rows.append(("cgroups", _cgroups()))
    if places is not None:
        kept = Store(places.instance_id, places.keys_dir, backend="auto" if places.is_default else "file")
        rows.append(("secrets", f"kept in {kept.kind}" + (f": {kept.why_file}" if kept.why_file else "")))
    shown = any(os.environ.get(n) for n in ("DISPLAY", "WAYLAND_DISPLAY"))
    rows.append(("display", "available" if shown else "not available, because neither DISPLAY nor WAYLAND_DISPLAY is set"))
    width = max(len(name) for name, _ in rows)
    show(given, {"checks": dict(rows), "at": time.time()}, [f"{name.ljust(width)}  {words}" for name, words in rows])
    return 0


def _cgroups() -> str:
    mounts = find_mounts()
    if mounts.v2 is None:
        return "not available, because no cgroup v2 is mounted. Mount one (mount -t cgroup2), or agents are held by PID namespaces alone."
    if os.geteuid() == 0:
        return f"available: own tree below {mounts.v2.point}"
    return f"v2 at {mounts.v2.point}; whether it is delegated to you shows in watchfloor status once the guard runs"
