"""Stops that are carried out: a rung of the ladder over a scope, a kill with its receipt, suspects of a kill."""

from __future__ import annotations

import math
import time

from console.api.client.api_client import ApiClient
from console.api.ladder import LadderBody, ScopeBody
from console.api.messages import ActView
from console.cli.link import build, connect
from console.cli.options import existing_places
from console.cli.stop import panic, receipt_text
from console.cli.stop.return_watch import after_watch
from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.domain.errors import AlreadyEnded, ConsoleError, ExitCode, Unreachable
from console.domain.kill import Receipt, Step, decided
from console.domain.ladder import Reach, Rung, Scope
from console.domain.process.account import operator
from console.domain.verdict import verdict, worst
from console.domain.words import counted
from console.killswitch.client.guard_client import GuardClient

DONE = {Rung.FREEZE: "frozen", Rung.THAW: "thawed", Rung.ISOLATE: "isolated", Rung.RECONNECT: "reconnected", Rung.KILL: "killed"}
NAMED = 20
SEEN_S = 3.0
"""Longest wait for what was frozen to be seen frozen."""


def kill_suspects(kill_id: str, pids: list[int], state_dir: str | None, *, dry_run: bool, as_json: bool) -> int:
    """Ends suspects of a kill through the guard: the ones named, or the preselected ones. Exit 0 when all of them are dead."""
    places = existing_places(state_dir)
    if dry_run:
        with connect(state_dir) as client:
            receipt_text.show_suspects(client.receipt(kill_id), as_json=as_json)
        return int(ExitCode.DONE)
    guard = GuardClient(places.guard_sock, timeout_s=10)
    try:
        answer = guard.end_suspects(kill_id, pids, operator())
    finally:
        guard.close()
    if as_json:
        out.emit({key: answer.get(key) for key in ("kill_id", "ended", "n", "n_done")})
    else:
        out.say(f"{int(answer.get('n_done', 0))} of {counted(int(answer.get('n', 0)), 'suspect')} dead")
        for one in answer.get("ended", []):
            words = f"process {int(one.get('pid', 0))}: {plain(str(one.get('words', '')), 300)}"
            (out.say if one.get("done") else out.note)(words)
        if not answer.get("n"):
            out.note("No suspect of this kill is preselected: name them with --pid.")
    return int(ExitCode.DONE if answer.get("n") and answer.get("n") == answer.get("n_done") else ExitCode.FAILURE)


def carry_out(rung: Rung, scope: Scope, reason: str, state_dir: str | None, *, as_json: bool, wait_watch: bool = False) -> int:
    """One rung over one scope; the exit code."""
    wanted = build(ScopeBody, reach=scope.reach.value, target=scope.target, others=list(scope.targets[1:]))
    body = build(LadderBody, action=rung.value, scope=wanted, reason=reason)
    if rung is Rung.KILL and scope.reach is Reach.ALL:
        return panic.panic(reason, state_dir, as_json, wait_watch)  # works without a supervisor
    if rung is Rung.KILL:
        return _kill(wanted, reason, state_dir, as_json, wait_watch)
    try:
        with connect(state_dir) as client:
            return _told(DONE[rung], client.ladder(body), as_json)
    except Unreachable as error:
        if rung is Rung.FREEZE and scope.is_everything:
            return _freeze_without_supervisor(state_dir, as_json, error)
        raise


def _kill(scope: ScopeBody, reason: str, state_dir: str | None, as_json: bool, wait_watch: bool) -> int:
    """The first result at zero, each later step as it is decided, then the whole receipt, which the exit code is of."""
    with connect(state_dir) as client:
        try:
            receipt = client.kill_scope(scope, reason)
        except AlreadyEnded as ended:
            kills = [_whole(client, one, as_json) for one in _kills_of(client, scope)] if wait_watch else []
            return _already(ended, scope, [_watched(one, state_dir, as_json) for one in kills], as_json)
        if not as_json and not panic.is_whole(receipt):  # the headline is the whole receipt's alone: later steps can only take from it
            out.note(panic.first_result(receipt))
        receipt = _whole(client, receipt, as_json)
    receipt = _watched(receipt, state_dir, as_json) if wait_watch else receipt
    receipt_text.show_receipt(receipt, as_json=as_json)
    return int(verdict(receipt).exit_code)


def _whole(client: ApiClient, receipt: Receipt, as_json: bool) -> Receipt:
    """The receipt with every step decided."""
    if not panic.is_whole(receipt):
        tell = _ignored if as_json else _told_of_step
        receipt = panic.see_through(client, receipt, time.monotonic() + panic.FINISH_S, tell)
    return receipt if panic.is_whole(receipt) else decided(receipt, f"not finished within {panic.FINISH_S:g} s")


def _watched(receipt: Receipt, state_dir: str | None, as_json: bool) -> Receipt:
    return after_watch(existing_places(state_dir), receipt, quiet=as_json)


def _kills_of(client: ApiClient, scope: ScopeBody) -> list[Receipt]:
    """The kills that ended an agent of the scope, or with ``tree`` anything below it, since that started; newest first."""
    agents = {agent.id: agent for agent in client.fleet().agents}
    since = {target: agents[target].started_at for target in (scope.target, *scope.others) if target in agents}
    while scope.reach == Reach.TREE.value and (
        more := {i: a.started_at for i, a in agents.items() if a.parent_id in since and i not in since}
    ):
        since |= more
    found = []
    for row in client.receipts().receipts:
        named = {i for i in (since if row.scope == "all" else row.scope.split(",")) if row.pressed_at >= since.get(i, math.inf)}
        if named:
            receipt = client.receipt(row.kill_id)
            found += [receipt] if row.scope != "all" or any(target.agent_id in named for target in receipt.targets) else []
    return found


def _already(ended: AlreadyEnded, scope: ScopeBody, kills: list[Receipt], as_json: bool) -> int:
    """That nothing is left to kill, and of those that were waited for the receipt that is worst: its exit code."""
    code = worst([ended.exit_code, *(verdict(one).exit_code for one in kills)])
    shown = next((one for one in kills if verdict(one).exit_code is code), None)
    if as_json:
        told = receipt_text.as_json(shown) if shown is not None else {"exit_code": int(code)}
        out.emit({"already_ended": True, "agent": ",".join((scope.target, *scope.others)), "words": ended.what, **told})
        return int(code)
    out.say(plain(ended.what, 500))
    if shown is not None:
        receipt_text.show_receipt(shown, as_json=False)
    return int(code)


def _told_of_step(step: Step) -> None:
    """Without its detail, which the receipt's table has."""
    out.note(f"{step.name.value.replace('_', ' ')}: {step.status.value}")


def _ignored(_step: Step) -> None:
    pass


def _freeze_without_supervisor(state_dir: str | None, as_json: bool, why: ConsoleError) -> int:
    """The guard freezes on its own word; only the supervisor knows a session or a tree."""
    places = existing_places(state_dir)
    guard = GuardClient(places.guard_sock, timeout_s=5)
    try:
        answer = guard.freeze("all", "operator", operator())
        doubts, unseen = _look_at_freeze(guard, dict(answer.get("unconfirmed", {})))
    except ConsoleError:
        raise why from None  # neither answers: how to start them is what helps
    finally:
        guard.close()
    asked = int(answer.get("frozen", 0)) + len(dict(answer.get("unconfirmed", {})))
    frozen = max(0, asked - unseen)
    failed = {str(agent): str(words) for agent, words in dict(answer.get("failed", {})).items()}
    failed |= {str(agent): f"not confirmed: {words}" for agent, words in doubts.items()}
    if as_json:
        out.emit({"agents": [], "frozen": frozen, "failed": failed, "by": "guard"})
    else:
        out.say(f"the supervisor does not answer; the guard has frozen {counted(frozen, 'agent')}")
        for agent, words in list(failed.items())[:NAMED]:
            out.note(f"NOT frozen: {plain(agent, 70)}: {plain(words, 500)}")
    return 1 if failed else 0


def _look_at_freeze(guard: GuardClient, asked: dict[str, str]) -> tuple[dict[str, str], int]:
    """Who is not seen to be frozen after ``SEEN_S`` at most (ten by name, all counted): that it was asked for is no proof."""
    until = time.monotonic() + SEEN_S
    try:
        while (look := guard.call("freezing", scope="all")).get("n") and time.monotonic() < until:
            time.sleep(0.05)
    except ConsoleError as error:
        return asked | {"all": f"the guard does not say who is frozen: {error}"}, len(asked)
    return {str(i): str(words) for i, words in dict(look.get("unconfirmed", {})).items()}, int(look.get("n", 0))


def _told(done: str, answer: ActView, as_json: bool) -> int:
    if as_json:
        out.emit_view(answer)
    else:
        if answer.agents:
            out.say(f"{done}: {_named(answer.agents)}")
        for agent, why in list(answer.failed.items())[:NAMED]:
            out.note(f"NOT {done}: {plain(agent, 70)}: {plain(why, 500)}")
        for agent, why in list(answer.excluded.items())[:NAMED]:
            out.note(f"left alone: {plain(agent, 70)}: {plain(why, 500)}")
        for words in answer.notes[:NAMED]:
            out.note(plain(words, 500))
    return int(ExitCode.FAILURE if answer.failed or not answer.agents else ExitCode.DONE)


def _named(ids: list[str]) -> str:
    words = ", ".join(plain(a, 70) for a in ids[:NAMED])
    return words + (f" and {len(ids) - NAMED} more" if len(ids) > NAMED else "")
