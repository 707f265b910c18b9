"""``watchfloor rearm``: shows what was killed and why, takes a proof of who asks, and says who may be started again, one by one."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from console.api.client.api_client import ApiClient
from console.api.rearm import AgainView, KilledView, RearmProof, RearmView, Signature
from console.cli.embedded import child_environment
from console.cli.link import connect
from console.cli.options import Json, Reason, StateDir
from console.cli.stop.secret_input import Fd, File, is_person, read_passphrase, typed
from console.cli.syntax import Option, example
from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.domain.errors import Conflict, ConsoleError, Denied, ExitCode, UsageProblem
from console.domain.process.account import named_here, operator
from console.domain.words import counted

SIGN_S = 60.0
SHOWN = 20
WHO = "Set a passphrase (watchfloor secrets passphrase set) and give it with --passphrase-fd, --passphrase-file or a pipe, or use --sign."


@example("--reason 'the leak is closed'")
def rearm(
    reason: Reason,
    kill_id: Annotated[str, Option("--kill-id", metavar="KILL", help="The newest kill as you know it; refused when it is another.")] = "",
    passphrase_fd: Fd = None,
    passphrase_file: File = None,
    sign: Annotated[bool, Option("--sign", help="Prove it with the operator keys of this instance instead of a passphrase.")] = False,
    keys: Annotated[str | None, Option("--keys", metavar="DIR", help="Folder of the keys that sign; implies --sign.")] = None,
    key: Annotated[
        list[str] | None, Option("--key", metavar="FILE", help="Repeatable: a private key that signs, too; implies --sign.")
    ] = None,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Release a local kill; nothing is restored. Takes the passphrase, a signature, or without one set the kill's id typed here."""
    if not reason.strip() or len(reason) > 500:
        raise UsageProblem("A reason has 1 to 500 characters.", 'For example: watchfloor rearm --reason "found it, fixed it"')
    with connect(state_dir) as client:
        view = client.rearm_view()
        if not as_json or is_person():
            show_view(view)
        if not view.killed:
            raise Conflict("Nothing is killed: there is nothing to rearm.", "watchfloor status shows the state.")
        if view.blockers:
            raise Conflict(view.blockers[0], "")
        if kill_id and kill_id != view.to_type:
            raise Conflict(f"The kill to release is {view.to_type}, not {plain(kill_id, 64)}.", "Look at its receipt, then rearm.")
        proof, named = RearmProof(operator=operator()[:100], generation=view.generation), kill_id or view.to_type
        if sign or keys or key:
            proof.signatures, proof.nonce = signed(client, view, reason, keys, key or ()), view.nonce
        elif view.passphrase == "not_set":  # noqa: S105 - a state
            proof.via, named = "terminal", _typed_id(view)  # never filled in: an empty line releases nothing
        else:
            proof.passphrase = _passphrase(view, passphrase_fd, passphrase_file)
        seen = client.rearm(reason, named, proof)
        after = client.rearm_view()
    if as_json:
        again = [a.as_data() for a in after.was_running]
        out.emit(
            seen.as_data(exclude={"schema_version", "receipts"})
            | {"was_running": again, "was_running_left_out": after.was_running_left_out}
        )
    else:
        out.say("Rearmed. Agents may be started again; nothing was restored.")
        if seen.rearm_note:
            out.show(out.words(f"note: {seen.rearm_note}", "yellow"))
        _show_again(after.was_running, after.was_running_left_out)
    return int(ExitCode.FAILURE if seen.killed else ExitCode.DONE)


def _typed_id(view: RearmView) -> str:
    if not is_person():
        raise Denied("No passphrase is set, so you must type the id of the kill at a terminal. This is no terminal.", WHO)
    out.show(
        out.words("No passphrase is set: the typed id of the kill is all it takes. Set one: watchfloor secrets passphrase set", "yellow")
    )
    return typed(f"Type the id of the kill, {plain(view.to_type)}, to release it: ")


def _passphrase(view: RearmView, fd: int | None, file: str | None) -> str:
    if view.passphrase == "broken":  # noqa: S105 - a state
        why = plain(view.passphrase_why, 200)
        raise Denied(f"The passphrase cannot be checked: {why}.", "The owner resets it at a terminal: watchfloor secrets passphrase reset")
    given = read_passphrase("Passphrase: ", fd, file)
    if not given:
        raise Denied("No passphrase was given.", WHO)
    return given


def signed(client: ApiClient, view: RearmView, reason: str, keys: str | None, files: Sequence[str] = ()) -> list[Signature]:
    """Signatures over exactly what was shown; made by a program of its own, since signing is not this room's."""
    what = {"instance": view.instance, "generation": view.generation, "kills": view.kill_ids, "nonce": view.nonce, "reason": reason}
    command = [sys.executable, "-m", "console.supervisor", "oneshot", "sign-rearm", "--state-dir", str(client.places.state_dir), "--json"]
    command += ["--keys", keys] if keys else []
    command += [word for file in files for word in ("--key", str(Path(file).absolute()))]
    done = subprocess.run(
        command, input=json.dumps(what), capture_output=True, text=True, timeout=SIGN_S, check=False, env=child_environment()
    )
    if done.returncode != 0:
        raise _not_signed(done)
    return [Signature(**entry) for entry in json.loads(done.stdout)["signatures"]]


def _not_signed(done: subprocess.CompletedProcess[str]) -> ConsoleError:
    """Its own words and exit code; one that broke down has no object on stdout."""
    try:
        said = dict(json.loads(done.stdout))
        error = ConsoleError(plain(str(said["error"]), 500), plain(str(said["remedy"]), 500))
    except (ValueError, KeyError, TypeError):
        error = ConsoleError(plain(done.stderr.strip() or "It could not be signed.", 500), "")
    error.exit_code = ExitCode(done.returncode) if done.returncode in set(ExitCode) else ExitCode.FAILURE
    return error


def show_view(view: RearmView) -> None:
    """What was killed and why, as far as the latch covers it; the newest last."""
    if not view.killed:
        return
    out.show(out.words(f"KILLED, {counted(len(view.kill_ids), 'kill')}, generation {view.generation}", "bold red"))
    for kill in view.kills[-SHOWN:]:
        _show_kill(kill)
    if view.reset_while_killed:
        out.show(out.words("The passphrase was reset while this was killed.", "yellow"))
    for order in view.remote_latched:
        out.say(f"remote order that blocks new agents: {plain(order)}")
    for words in view.blockers:
        out.show(out.words(f"first: {words}", "yellow", 400))


def _show_kill(kill: KilledView) -> None:
    if not kill.has_receipt:
        out.say(f"{plain(kill.kill_id)}  (no receipt: it reads as killed)")
        return
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(kill.pressed_at or 0))
    out.say(f"{plain(kill.kill_id)}  {at}  by {plain(named_here(kill.by), 120)}: {plain(kill.reason, 500)}")
    out.say(f"    {plain(kill.headline, 1000)}{'' if kill.complete else ' Steps are still open.'}")
    for label, things in (("best effort", kill.best_effort), ("survivor", kill.survivors), ("step", kill.bad_steps)):
        for thing in things[:SHOWN]:
            out.say(f"    {label}: {plain(thing, 300)}")


def _show_again(agents: list[AgainView], left_out: int) -> None:
    ready = [a for a in agents if not a.why_not]
    if ready:
        out.say("Running before the kill; each comes back only when you start it:")
    for agent in ready[:SHOWN]:
        name = plain(agent.name, 60)
        out.say(f"    watchfloor run --again {agent.id}    {name}")
    if len(ready) > SHOWN:
        out.say(f"    and {len(ready) - SHOWN} more: watchfloor rearm --json lists them all")
    if left_out:
        out.say(f"    and {left_out} more that are not listed: watchfloor fleet")


def hint(client: ApiClient) -> None:
    """One amber line for a person, when no passphrase is set."""
    if not (sys.stderr is not None and sys.stderr.isatty()):
        return
    found: Any = None
    try:
        found = client.passphrase().passphrase
    except ConsoleError:
        return
    if found == "not_set":
        out.note("note: no passphrase is set for rearm; set one: watchfloor secrets passphrase set")
