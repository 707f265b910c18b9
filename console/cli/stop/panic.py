"""``watchfloor panic``: presses the guard at once (or does its work from the registry), then sees the later steps through.

Until the press is out nothing heavy is imported: no HTTP, no msgspec.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from console.cli.options import Json, StateDir, WaitWatch, existing_places, seek_places
from console.cli.syntax import Option, example
from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.domain.errors import ConsoleError, Denied, ExitCode, NotFound, TimedOut, Unreachable, UsageProblem
from console.domain.kill import Receipt, Step, StepName, StepStatus, decided
from console.domain.process.account import operator
from console.domain.verdict import verdict, worst
from console.domain.words import NO_REASON
from console.killswitch.client.kill import press_and_wait, press_as_member, press_without_guard
from console.settings.places import Places, choose_state_dir

if TYPE_CHECKING:
    from console.api.client.api_client import ApiClient
    from console.killswitch.client.moved_instance import Candidate

FINISH_S = 20.0
"""How long to wait for rotation, remote write and evidence."""
"""As in the window: nothing stands between a person and a panic."""
REASON_BYTES = 2500
_LOOK_S = 0.1
NOTICED_S = 3.0
"""How long a guard may take to notice that its state directory is gone."""


@example("--reason 'agents write to production'")
def panic(
    reason: Annotated[str, Option("--reason", metavar="WORDS", help="Why; recorded, and written to the remote order.")] = NO_REASON,
    state_dir: StateDir = None,
    as_json: Json = False,
    wait_watch: WaitWatch = False,
) -> int:
    """Kill everything at once and print the receipt. Exit: 0 confirmed, 7 a later step is open, 8 not all confirmed, 9 NOT PROVEN."""
    reason = reason.strip() or NO_REASON
    if len(reason) > 500:
        raise UsageProblem("A reason has at most 500 characters.", 'For example: watchfloor panic --reason "agents write to production"')
    # 1. The kill itself: guard first, without it from the registry, by the same code.
    done = [(places, pressed(places, fitting(reason), operator())) for places in places_to_kill(state_dir)]
    return int(worst([_seen_through(places, local, as_json=as_json, wait_watch=wait_watch) for places, local in done]))


def _seen_through(places: Places, local: Receipt, *, as_json: bool, wait_watch: bool) -> ExitCode:
    if not as_json:
        out.note(first_result(local))
    # 2. What takes a supervisor: rotation, remote write, evidence.
    receipt = finished(places, local) if (places.state_dir / "instance.json").exists() else unfinished(places, local)
    from console.cli.stop.receipt_text import show_receipt
    from console.cli.stop.return_watch import after_watch

    if wait_watch:
        receipt = after_watch(places, receipt, quiet=as_json)
    show_receipt(receipt, as_json=as_json)
    return verdict(receipt).exit_code


def first_result(receipt: Receipt) -> str:
    """What is known at zero, without the headline: that is decided with the last step, and stands in the receipt."""
    return f"killed, first result: {verdict(receipt).short}; the receipt follows"


def places_to_kill(state_dir: str | None) -> Iterator[Places]:
    """The places of the instance. Where its state directory was moved, deleted or replaced: of each that may be it. Raises NotFound."""
    places, (folder, is_default) = seek_places(state_dir), choose_state_dir(state_dir)
    if places is not None:
        yield places
    if places is not None and places.by_role:
        return
    from console.killswitch.client.moved_instance import candidates, candidates_beside

    if places is not None:  # guards that worked here before another directory was put in the place of theirs
        yield from (_gone(folder, one, is_default) for one in candidates_beside(folder))
        return
    deadline = time.monotonic() + NOTICED_S
    while True:
        found, passed_over = candidates(folder)
        if time.monotonic() > deadline or not any(one.has_guard and one.folder is None for one in found):
            break
        time.sleep(_LOOK_S)
    for words in passed_over:
        out.note(f"passed over: {plain(words, 400)}")
    yield from [_gone(folder, one, is_default) for one in found] or [existing_places(state_dir)]


def _gone(folder: Path, one: Candidate, is_default: bool) -> Places:
    """Where an instance records whose state directory is gone."""
    from console.killswitch.guard.relocation import make_folder

    if one.folder is not None and one.is_heard:
        out.note(f"the state directory {plain(str(folder), 300)} is gone; the guard records in {plain(str(one.folder), 300)}")
        return Places(one.folder, one.folder, one.instance_id, is_default)
    out.note(f"the state directory {plain(str(folder), 300)} is gone and no guard answers; doing its work here")
    elsewhere = one.folder or make_folder(one.instance_id, folder, was_in_use=True)
    return Places(elsewhere, folder / "run", one.instance_id, is_default)


def unfinished(places: Places, local: Receipt) -> Receipt:
    """The receipt of an instance whose state directory is gone: no supervisor can carry out the later steps."""
    return decided(replace(local, complete=False), f"the state directory is gone; what is known is in {places.state_dir}")


def fitting(reason: str) -> str:
    """The reason cut so that it fits into one line to the guard whatever its letters are (4 KiB, JSON escapes up to 12 bytes each)."""
    while len(json.dumps(reason)) > REASON_BYTES:
        reason = reason[: len(reason) * 9 // 10]
    return reason


def pressed(places: Places, reason: str, by: str) -> Receipt:
    """The kill and its local proof. A guard that refuses for any reason but identity, or is too slow to prove, does not end it."""
    spot = (places.state_dir, places.run_dir, places.instance_id)
    if places.by_role:
        return _pressed_by_member(spot, reason, by)
    try:
        return press_and_wait(*spot, "all", reason, by)
    except Denied:
        raise
    except ConsoleError as error:
        out.note(f"the guard did not do it ({plain(error.what, 200)}); doing its work here")
        return press_without_guard(*spot, "all", reason, by)


def _pressed_by_member(spot: tuple[Path, Path, str], reason: str, by: str) -> Receipt:
    try:
        return press_as_member(*spot, "all", reason, by)
    except (Unreachable, TimedOut) as error:
        remedy = "Ask root to run: sudo watchfloor panic"
        raise type(error)(f"The guard of this host did not confirm that everything was stopped: {error.what}", remedy) from error


def finished(places: Places, local: Receipt, wait_s: float = FINISH_S) -> Receipt:
    """The receipt as the supervisor completed it within ``wait_s``; otherwise what is known, the rest ``unknown``.

    ``local`` calls itself complete: the guard's own part of it is. That says nothing of rotation, remote write and evidence.
    """
    from console.api.client.api_client import ApiClient  # after the press; see the module's docstring
    from console.cli.embedded import answers, refuse_to_start, start_supervisor

    deadline = time.monotonic() + wait_s
    best = replace(local, complete=False)
    try:
        if not answers(places, timeout_s=2):
            refuse_to_start(places)
            start_supervisor(places, ready_s=wait_s / 2)
        with ApiClient(places, timeout_s=2) as client:
            best = see_through(client, best, deadline)
        if is_whole(best):
            return best
        why = f"not finished within {wait_s:g} s"
    except ConsoleError as error:
        why = error.what
    except OSError as error:  # a disk that refuses even the log of a supervisor: what was killed is told all the same
        why = f"no supervisor can be started: {error.strerror or error}"
    return decided(best, why)


def see_through(client: ApiClient, known: Receipt, deadline: float, tell: Callable[[Step], None] = lambda step: None) -> Receipt:
    """The receipt once every step of it is decided, or as it is at the deadline (CLOCK_MONOTONIC). ``tell`` hears of each later step."""
    told = {step.name for step in known.steps if step.status is not StepStatus.PENDING}
    while True:
        known = _seen_by_supervisor(client, known)
        for step in known.steps:
            if step.status is not StepStatus.PENDING and step.name not in told:
                told.add(step.name)
                tell(step)
        if is_whole(known) or time.monotonic() > deadline:
            return known
        time.sleep(_LOOK_S)


def _seen_by_supervisor(client: ApiClient, known: Receipt) -> Receipt:
    """The supervisor's receipt of the same kill; what was known when it has none yet, or is too slow to say."""
    try:
        return client.receipt(known.kill_id)
    except (NotFound, TimedOut):
        return known


def is_whole(receipt: Receipt) -> bool:
    """Whether every step of it is decided."""
    return receipt.complete and {s.name for s in receipt.steps if s.status is not StepStatus.PENDING} >= set(StepName)
