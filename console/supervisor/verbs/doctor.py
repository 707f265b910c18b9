"""``watchfloor doctor``: what this machine can do, part by part, found out by doing; the launch ladder and what would raise it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from console.credentials.keyring_store import Store
from console.domain.agent import SandboxKind
from console.domain.errors import ConsoleError, ExitCode
from console.domain.sandbox import LaunchRung, build_ladder, default_rung
from console.egress.service import Egress
from console.killswitch.kernel.delegation import find_cgroup
from console.sandbox.hardening import TABLE, Mode
from console.sandbox.rungs import find_pid_namespaces
from console.settings.options import Options
from console.settings.places import Places
from console.sources.home_dirs import read_foreign
from console.sources.hook_settings import FILE_MAX, cannot_run
from console.sources.kinds import HOOKS
from console.supervisor.adapters import sandboxes_of, sources_of
from console.supervisor.installing import GAINS, services
from console.wording.agent_kinds import GOES_ON

NO_INSTANCE = "00000000"
"""Stands in the name of a trial scope where there is no instance yet."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that was looked at."""

    checks: dict[str, str]
    ladder: tuple[LaunchRung, ...]

    @property
    def exit_code(self) -> ExitCode:
        """0: an agent started here by default can be stopped with proof; 8: only as a best effort."""
        return ExitCode.BEST_EFFORT if default_rung(self.ladder).best_effort else ExitCode.DONE

    def as_json(self) -> dict[str, Any]:
        """Plain data; keys are stable, more may be added."""
        rung = default_rung(self.ladder)
        default = {"rung": rung.name.value, "best_effort": rung.best_effort, "proof": rung.proof, "note": rung.note}
        return {"checks": self.checks, "ladder": [_rung_json(rung) for rung in self.ladder], "default": default}

    def lines(self) -> list[str]:
        """For a person."""
        width = max(len(name) for name in self.checks)
        rung = default_rung(self.ladder)
        words = [f"{name.ljust(width)}  {said}" for name, said in self.checks.items()]
        words += ["", "sandboxes, strongest first; an agent is started in the first that is available"]
        for number, each in enumerate(self.ladder, 1):
            words += [f"{number} {each.name.value.ljust(13)} {line}" if first else f"{'':15} {line}" for first, line in _rung_lines(each)]
        proof = f"proven by {rung.proof}" if rung.proof else "BEST EFFORT, not confirmed"
        return [*words, "", f"agents get here: {rung.name.value}; a stop is {proof}"]


def diagnose(places: Places | None, options: Options) -> Diagnosis:
    """Looks at everything; makes and ends what it tries."""
    cgroup = find_cgroup(places.instance_id if places is not None else NO_INSTANCE)
    pids = find_pid_namespaces()
    ladder = build_ladder(cgroup, pids, other_uid=os.geteuid() == 0)
    checks = {("managed" if kind.value == "none" else kind.value): _words(box.available()) for kind, box in sandboxes_of(options).items()}
    checks["hardening"] = _cannot()
    checks["managed"] += f": {sandboxes_of(options)[SandboxKind.NONE].available().reason}"
    scratch = places.state_dir if places is not None else Path("/nonexistent")
    checks["envoy"] = _words(Egress(scratch / "egress", scratch / "run", lambda record: None).available())
    checks["cgroups"] = f"available: {cgroup.tried}" if cgroup.ok else f"not available, because {cgroup.tried}"
    if places is not None:
        kept = Store(places.instance_id, places.keys_dir, backend=options.secrets_in(places.is_default), settle=False)
        checks["secrets"] = f"kept in {kept.kind}" + (f": {kept.why_file}" if kept.why_file else "")
        checks |= _sources(places, options)
        checks["remote kill"] = _remote(options)
    else:
        checks["sources"] = "not looked at: there is no instance here yet (watchfloor, or watchfloor supervisor, makes it)"
    checks |= _hooks()
    checks["services"] = _services()
    shown = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    checks["display"] = "available" if shown else "not available, because neither DISPLAY nor WAYLAND_DISPLAY is set"
    return Diagnosis(checks, ladder)


def _remote(options: Options) -> str:
    """What this host's credentials can read in the bucket of the remote kill; nothing is written."""
    if not options.remote.bucket:
        return "not available, because the setting remote.bucket is empty"
    # Not above: the client of the store is slow to load, and most hosts have no bucket.
    from console.remotekill.store import RemoteStore
    from console.services.remote.service import missed_words, unread_words

    with closing(RemoteStore(options.remote.bucket, options.remote.key, options.remote.endpoint or None)) as store:
        seen, orders, history = store.read(), store.read_orders(1, 1), store.read_history(None)
    if seen.fault:
        return f"not available, because the kill file cannot be read: {seen.fault}"
    doubts = [unread_words(orders.fault)] if orders.fault else []
    doubts += [missed_words(history.blind or history.fault)] if history.blind or history.fault else []
    return f"available{', but ' if doubts else ''}{'; '.join(doubts)}"


def _cannot() -> str:
    """What no launch in each isolation mode can give on this host, at best; each launch is read back besides."""
    words = [f"{mode}: {'; '.join(m.name for m in TABLE if mode in m.lacking) or 'nothing'}" for mode in Mode]
    return "what a mode may lack (watchfloor sandbox show AGENT says what one does, because of what): " + " | ".join(words)


def _services() -> str:
    """Whether the host's own instance runs, and what it adds to a user's own."""
    why, how = services()
    adds = "; ".join(f"{gain.name}: {gain.then}" for gain in GAINS)
    return f"not available, because {why}: {how}. It adds: {adds}" if why else f"available: root is its operator; for a role: {how}"


def _hooks() -> dict[str, str]:
    """Whether our hook stands in this user's settings of each program, and whether the program would run it."""
    found = {}
    for program, hook in HOOKS.items():
        file = Path.home() / hook.place
        why = f"it is not installed (watchfloor install-hook {program})"
        try:
            data = read_foreign(file, FILE_MAX).data
            if command := hook.installed(data, str(file)):
                skipped, broken = hook.why_skipped(data, file), cannot_run(command)
                why = f"{program} skips it: {skipped}" if skipped else ""
                why = f"{broken} (watchfloor install-hook {program} installs it again)" if broken else why
        except FileNotFoundError:
            pass
        except (ConsoleError, OSError) as error:
            why = f"{file} cannot be read: {error}"
        here = f"available: installed in {file}; watchfloor status says whether calls have reached the supervisor. But {GOES_ON}"
        found[f"hook {program}"] = f"not available, because {why}" if why else here
    return found


def _sources(places: Places, options: Options) -> dict[str, str]:
    """Each source of agents looks once: what it sees and stops, and where it looked."""
    found = {}
    for source in sources_of(places, options):
        report = source.look()
        seen = f"available: {len(report.sightings)} seen now. {report.reason}" if report.available else report.reason
        found[f"source {source.name}"] = f"{seen} Sees: {source.can_see} Stops: {source.can_stop}"
    return found


class Ready(Protocol):
    """What every room says of a part of its own."""

    @property
    def ok(self) -> bool: ...
    @property
    def reason(self) -> str: ...
    @property
    def remedy(self) -> str: ...


def _words(ready: Ready) -> str:
    return "available" if ready.ok else f"not available, because {ready.reason.rstrip('.')}. {ready.remedy}"


def _rung_json(rung: LaunchRung) -> dict[str, Any]:
    return {
        "rung": rung.name.value,
        "available": rung.available,
        "best_effort": rung.best_effort,
        "proof": rung.proof,
        "tried": list(rung.tried),
        "raised_by": list(rung.raised_by),
        "note": rung.note,
    }


def _rung_lines(rung: LaunchRung) -> Iterator[tuple[bool, str]]:
    """(whether it is the first line of this rung, the line)."""
    yield True, ("available" if rung.available else "not available") + (f"; {rung.note}" if rung.note else "")
    for tried in rung.tried:
        yield False, f"tried: {tried}"
    for way in rung.raised_by:
        yield False, f"raised by: {way}"
