"""Verbs that need machinery but no daemon: keys, release, watch, doctor. Run as ``python -m console.supervisor oneshot VERB ...``."""

from __future__ import annotations

import argparse
import time

from console.domain.errors import UsageProblem
from console.settings.options import Options, load_options
from console.settings.places import Places, find_places
from console.supervisor import signing
from console.supervisor.doctor import diagnose
from console.supervisor.rearm_signing import sign_rearm, sign_rearm_arguments
from console.supervisor.signing import show
from console.supervisor.tools_verb import tools_arguments, tools_verb
from console.supervisor.watch import watch, watch_arguments


def oneshot(what: str, rest: list[str]) -> int:
    """Runs one verb; prints words, or one JSON object with --json."""
    verbs = {
        "keys": signing.keys,
        "release": signing.release,
        "doctor": _doctor,
        "watch": watch,
        "sign-rearm": sign_rearm,
        "tools": tools_verb,
    }
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
        "tools": tools_arguments,
    }
    if what in arguments:
        arguments[what](parser)
    given = parser.parse_args(rest)
    places = find_places(given.state_dir, create=what not in ("doctor", "watch"))
    return verbs[what](places, given)


def _doctor(places: Places | None, given: argparse.Namespace) -> int:
    """Exit code 0 when a stop of what is started here by default can be proven, 8 when it is a best effort."""
    found = diagnose(places, load_options(places.settings_file) if places is not None else Options())
    show(given, found.as_json() | {"at": time.time()}, found.lines())
    return int(found.exit_code)
