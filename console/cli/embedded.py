"""Starting supervisor and guard as detached processes when none runs (the embedded default of console, demo, run and panic)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import console
from console.api.client.api_client import ApiClient
from console.api.client.wire import STARTS_S, unreachable
from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.cli.terminal.waiting import said_while
from console.domain.errors import ConsoleError, TimedOut, Unreachable
from console.killswitch.client.moved_instance import candidates_beside
from console.killswitch.client.patience import Patience
from console.settings.places import HOSTS_STATE, Places, choose_state_dir, find_places

READY_S = 60.0
ANSWER_S = 5.0
"""Seconds without an answer after which a supervisor that listens counts as hung."""
_LOOK_S = 0.05
detached: list[subprocess.Popen[bytes]] = []
"""Processes that this process started and does not wait for. The list keeps Python from reporting them as forgotten."""


def ensure_supervisor(state_dir: str | None, *extra: str, ready_s: float = READY_S) -> Places:
    """Return the places of an instance whose supervisor answers. Start a supervisor when none does.

    Raises TimedOut when one is there but does not answer (hung: a second one would be refused), ConsoleError when it cannot start.
    """
    places = find_places(state_dir, create=True)
    if not _one_is_there(places):
        refuse_to_start(places)
        _tell_of_moved_ones(places)
        start_supervisor(places, *extra, ready_s=ready_s)
    return places


def _tell_of_moved_ones(places: Places) -> None:
    """A new instance in the place of one whose folder was moved or deleted is empty, and the agents of the other go on."""
    for one in candidates_beside(places.state_dir):
        out.note(
            f"Another instance ran in {plain(places.state_dir, 300)} until that folder was moved or deleted. Its guard still runs, and "
            f"records in {plain(one.folder, 300)}. This is a new, empty instance; watchfloor panic stops the agents of both."
        )


def start_own(state_dir: str | None) -> bool:
    """Start the supervisor of this account's own instance when none answers. False for another folder, for root and for members."""
    folder, is_default = choose_state_dir(state_dir)
    # A service of the host's may be meant to run the others, and a folder that was named may be a mistake.
    if not is_default or folder == HOSTS_STATE:
        return False
    ensure_supervisor(state_dir)
    return True


def refuse_to_start(places: Places) -> None:
    """Raises Unreachable for the host's instance, whose service root starts."""
    if places.by_role:
        raise unreachable(places)


def _one_is_there(places: Places) -> bool:
    """Raises TimedOut in words of a start: nothing was asked for yet, so nothing was done."""
    folder = plain(places.state_dir, 300)
    of_systemd = f", or {STARTS_S:g} s while systemd starts it" if places.state_dir == HOSTS_STATE else ""
    try:
        with said_while(f"the supervisor of {folder} to answer", f"after {ANSWER_S:g} s{of_systemd}"):
            return answers(places, ANSWER_S)
    except TimedOut as error:
        raise TimedOut(
            f"The supervisor of {folder} listens but did not answer in time; nothing was started.",
            "It is busy or hangs: try again, then watchfloor status. watchfloor panic needs no supervisor.",
        ) from error


def answers(places: Places, timeout_s: float = ANSWER_S) -> bool:
    """Whether a supervisor answers; False when none listens. Raises TimedOut when one listens but is silent."""
    with ApiClient(places, timeout_s) as client:
        try:
            client.status()
        except Unreachable:
            return False
    return True


def start_supervisor(places: Places, *extra: str, ready_s: float = READY_S) -> None:
    """Starts ``python -m console.supervisor serve --embedded`` detached and waits until it answers, or has stood still for ``ready_s``."""
    log = places.log_file
    with open(log, "ab", opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW, 0o600)) as sink:  # noqa: PTH123 - with a mode
        start = sink.tell()
        child = subprocess.Popen(
            [sys.executable, "-m", "console.supervisor", "serve", "--state-dir", str(places.state_dir), "--embedded", *extra],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
            env=child_environment(),
        )
    detached.append(child)
    patience = Patience(child.pid, ready_s)
    with said_while("the supervisor that was just started", f"once it has stood still for {ready_s:.0f} s"):
        while not patience.is_over():
            if _answers_already(places):
                return
            if child.poll() is not None:
                if answers(places):  # another one won the race
                    return
                why = f"The supervisor could not start (exit {child.returncode}): {_last_words(log, start)}"
                raise ConsoleError(why, f"Its log is {log}.")
            time.sleep(_LOOK_S)
    raise TimedOut(
        f"The supervisor was started but did not answer within {patience.waited_s:.0f} s, and gets no further.", f"Its log is {log}."
    )


def _answers_already(places: Places) -> bool:
    """One that starts on a busy machine may listen for a while before it answers: it is not called hung before its time is over."""
    try:
        return answers(places, timeout_s=2)
    except TimedOut:
        return False


def child_environment() -> dict[str, str]:
    """Our environment, in which ``python -m console...`` finds this very package from any folder, and nothing in the present one.

    Without PYTHONSAFEPATH Python would take a ``console`` that an agent left in the folder a person stands in.
    """
    root = str(Path(console.__file__).resolve().parent.parent)
    path = [root, *(p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p and p != root)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), "PYTHONSAFEPATH": "1"}


def _last_words(log: Path, start: int) -> str:
    with log.open("rb") as source:
        source.seek(start)
        lines = [line for line in source.read()[-8000:].decode(errors="replace").splitlines() if line.strip()]
    return plain(lines[-1], 300) if lines else "it said nothing"
