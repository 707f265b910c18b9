"""``watchfloor status``: can this host be stopped, by which paths, how fast."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from console.api.client.reading import ReadingClient
from console.cli.agents.agent_type import discovery_lines
from console.cli.hook import hook_words, installed_in
from console.cli.options import Json, StateDir, existing_places
from console.cli.syntax import example
from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.cli.terminal.tables import new_table
from console.cli.webhook import webhook_lines
from console.domain.calls.profile import OBSERVE, OBSERVED
from console.domain.errors import ConsoleError, ExitCode
from console.domain.process.account import named_here
from console.domain.words import counted, mode_words
from console.killswitch.client.guard_client import GuardClient
from console.settings.places import INSTANCE_VARIABLE, Places

if TYPE_CHECKING:
    from console.api.messages import KillSwitchView, StatusView
    from console.api.policy.hooks import HooksView

_PASSPHRASE = {
    "not_set": "no passphrase is set for rearm: the typed id of the kill is enough; set one: watchfloor secrets passphrase set",
    "broken": "the passphrase for rearm cannot be checked; the owner resets it at a terminal: watchfloor secrets passphrase reset",
}
_PATH_STYLES = {"proven": "green", "in_doubt": "yellow", "not_configured": "dim", "unavailable": "dim"}


@example("--json")
def status(state_dir: StateDir = None, as_json: Json = False) -> int:
    """Can this host be stopped, by which paths, how fast. Works without a supervisor; exit 6 when no guard answers."""
    places = existing_places(state_dir)
    guard, guard_why = _guard(places)
    supervisor, switch, hooks, supervisor_why = _supervisor(places)
    there = installed_in(Path(os.path.expanduser("~")))  # noqa: PTH111 - Path.home() raises for an account without a home folder
    kept = _kept_latch(places) if guard is None and switch is None and not places.by_role else ""
    if as_json:
        out.emit(
            {
                "state_dir": str(places.state_dir),
                "instance": _instance(places, supervisor),
                "is_hosts": places.by_role,
                "state": _state(guard, switch, kept),
                "armed": _armed(guard, supervisor, switch, kept),
                "guard": guard,
                "guard_error": guard_why,
                "supervisor": None if supervisor is None else supervisor.as_data(),
                "supervisor_error": supervisor_why,
                "kill_switch": None if switch is None else switch.as_data(exclude={"receipts"}),
                "hooks": {"installed": there, "heard": None if hooks is None else hooks.as_data()},
            }
        )
    else:
        _print_status(places, guard, guard_why, supervisor, switch, supervisor_why, kept)
        for program, is_there in there.items():
            out.say_folded(f"hook of {program}: {hook_words(program, installed=is_there, view=hooks)}")
        for kind, name in sorted(supervisor.profiles.items()) if supervisor is not None else ():
            words = f"; {OBSERVED}" if name == OBSERVE else ""
            out.say_folded(f"profile of {plain(kind, 80)}: {plain(name)}{words}")
        for line in webhook_lines(supervisor.alerts.webhook) if supervisor is not None else ():
            out.say_folded(f"webhook: {line}")
        for line in discovery_lines(supervisor.sources) if supervisor is not None else ():
            out.say_folded(f"source {line}")
    return int(ExitCode.DONE if guard is not None else ExitCode.UNREACHABLE)


def _guard(places: Places) -> tuple[dict[str, Any] | None, str]:
    """The guard's own status, or why it does not answer."""
    guard = GuardClient(places.guard_sock, timeout_s=2)
    try:
        return guard.status(), ""
    except ConsoleError as error:
        return None, error.what
    finally:
        guard.close()


def _kept_latch(places: Places) -> str:
    """Why this host is killed by the latch on disk, which holds with everybody dead and reads so when it cannot be read; or empty."""
    from console.killswitch.store.latch import Latch

    latch = Latch(places.guard_dir, run_dir=places.run_dir)
    latch.load()
    return f"the latch on disk holds: {latch.state.why or 'a press'}" if latch.state.latched else ""


def _supervisor(places: Places) -> tuple[StatusView | None, KillSwitchView | None, HooksView | None, str]:
    try:
        client = ReadingClient(places, timeout_s=5)
        return client.status(), client.kill_switch(), client.hooks(), ""
    except ConsoleError as error:
        return None, None, None, str(error)


def _instance(places: Places, supervisor: StatusView | None) -> str:
    """Return the instance's id. A member of the roles' groups reads no file of it, so the supervisor says it; empty: none answers."""
    return places.instance_id or (plain(supervisor.instance) if supervisor is not None else "")


def _armed(guard: dict[str, Any] | None, supervisor: StatusView | None, switch: KillSwitchView | None, kept: str) -> dict[str, Any]:
    """Return the state of the kill switch, as docs/explanation/armed-light.md describes it.

    Without a supervisor no path is tested, so the state is in doubt and ``why`` says the reason.
    """
    seen = supervisor.armed if supervisor is not None else None
    light: dict[str, Any] = {"why": ["no supervisor answers: no path is being proven"], "worst_s": None, "paths": []}
    if seen is not None:
        light = seen.as_data()
    light["state"] = _state(guard, switch, kept)
    if guard is None:
        light["why"].insert(0, "the guard does not answer; panic still works")
    return light


def _state(guard: dict[str, Any] | None, switch: KillSwitchView | None, kept: str) -> str:
    """Unknown is never green: without a guard, or with no supervisor that checks the paths, nothing is ``armed``."""
    if guard is None:
        return "killed" if kept or (switch is not None and switch.killed) else "in_doubt"
    if guard.get("latched"):
        return "killing" if switch is not None and switch.state == "killing" else "killed"
    return switch.state if switch is not None else "in_doubt"


def _state_words(state: str) -> str:
    return {
        "armed": "READY: this host can be stopped",
        "in_doubt": "NOT READY: not every way to stop this host is tested",
        "killing": "KILLING",
        "killed": "EVERYTHING STOPPED: nothing can start until you rearm",
    }.get(state, plain(state))


def _print_status(
    places: Places,
    guard: dict[str, Any] | None,
    guard_why: str,
    supervisor: StatusView | None,
    switch: KillSwitchView | None,
    supervisor_why: str,
    kept: str,
) -> None:
    state = _state(guard, switch, kept)
    out.show(out.words(_state_words(state), {"armed": "bold green", "in_doubt": "bold yellow"}.get(state, "bold red")))
    out.say_folded(f"state directory {places.state_dir}, instance {_instance(places, supervisor) or 'unknown: no supervisor answers'}")
    if places.by_role:
        roles = ", ".join(supervisor.your_roles) if supervisor is not None else "unknown while no supervisor answers"
        out.say_folded(f"this is the host's instance; your role: {plain(roles, 100)}. Your own: {INSTANCE_VARIABLE}=own watchfloor status")
    if guard is None:
        out.say_folded(f"guard: does not answer ({plain(guard_why, 300)}); panic still works")
        if kept:
            out.say_folded(plain(kept, 600))
    else:
        caps = guard.get("caps") or {}
        how = caps.get("cgroup") or f"no cgroup, because {caps.get('why', 'unknown')}"
        out.say_folded(f"guard: pid {guard.get('pid')}, {counted(int(guard.get('agents') or 0), 'agent')}, {plain(how, 200)}")
        for words in guard.get("notices") or ():
            out.say_folded(f"guard notice: {plain(words, 300)}")
    if supervisor is None:
        out.say_folded(f"supervisor: {plain(supervisor_why, 400)}")
    else:
        out.say_folded(f"supervisor: pid {supervisor.pid}, {mode_words(supervisor.mode)}{_detail(supervisor.mode_note)}")
        _print_gains(supervisor)
        if supervisor.audit_whole is False:
            out.say_folded(f"log NOT INTACT: {plain(supervisor.audit_why, 600)}")
        if supervisor.configuration:
            out.show(out.words(f"settings: {supervisor.configuration}", "yellow", 1000))
        for words in (*supervisor.notices, *(f"stand-in: {s}" for s in supervisor.stand_ins)):
            out.say_folded(f"  {plain(words, 300)}")
    if switch is not None:
        _print_switch(switch)


def _print_gains(supervisor: StatusView) -> None:
    if (installing := supervisor.installing) is None:
        return
    out.say_folded(f"the host's own instance would change this; root runs: {plain(installing.how, 400)}")
    for gain in installing.gains:
        agents = f" (now of {', '.join(plain(agent, 40) for agent in gain.agents)})" if gain.agents else ""
        out.say_folded(f"  {plain(gain.name)}: {plain(gain.now)}{agents}; then {plain(gain.then)}")


def _detail(words: str) -> str:
    return f" ({plain(words, 300)})" if words else ""


def _print_switch(switch: KillSwitchView) -> None:
    if switch.killed:
        out.say_folded(f"killed by {plain(named_here(switch.by))}: {plain(switch.reason, 600)} ({plain(switch.kill_id)})")
    if switch.passphrase in _PASSPHRASE:
        out.show(out.words(_PASSPHRASE[switch.passphrase], "yellow"))
    if switch.soft_stop:
        out.say_folded(f"soft stop: {plain(switch.soft_stop, 300)}")
    for order in switch.remote_latched:
        out.say_folded(f"remote order that blocks new agents: {plain(order)}")
    table = new_table("WAY TO STOP", "STATE", "PROVEN", "TOOK", "WORST", "DETAIL")
    for path in switch.paths:
        worst = "-" if path.worst_s is None else f"{path.worst_s:g} s"
        state = out.words(path.state.replace("_", " "), _PATH_STYLES[path.state])
        age = "-" if path.proof_age_s is None else f"{path.proof_age_s:.0f} s ago"
        took = "-" if path.measured_ms is None else f"{path.measured_ms:.0f} ms"
        table.add_row(out.words(path.name), state, age, took, worst, out.words(path.detail, limit=300))
    out.show(table)
