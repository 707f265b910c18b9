"""The whole id for the beginning of one, where a verb has found nothing under the word that was typed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from console.cli.link import connect, look
from console.cli.syntax import Verb
from console.cli.terminal.plain import plain
from console.domain.errors import ConsoleError, UsageProblem

LEAST = 4
"""Letters of a beginning: ``a-`` alone must not stand for the only agent there is."""
NAMED = 5


def _agents(state_dir: str | None) -> Iterable[str]:
    return (one.id for one in look(state_dir).fleet().agents)


def _kills(state_dir: str | None) -> Iterable[str]:
    with connect(state_dir) as client:
        return [one.kill_id for one in client.receipts().receipts]


def _approvals(state_dir: str | None) -> Iterable[str]:
    seen = look(state_dir).approvals()
    return (one.id for one in (*seen.waiting, *seen.decided))


_LISTS: dict[str, Callable[[str | None], Iterable[str]]] = {"AGENT": _agents, "KILL": _kills, "APPROVAL": _approvals}
"""By what a parameter is called in its help."""


def whole_ids(verb: Verb, given: dict[str, Any]) -> dict[str, Any]:
    """Return the same values with whole ids; empty when no word of them begins one. Raises UsageProblem where a word begins several."""
    found: dict[str, Any] = {}
    for one in verb.parameters():
        word, listed = given.get(one.key), _LISTS.get(one.mark.metavar)
        # Never of an option: the id of a kill that a rearm takes is proof that a person knows it.
        if listed is None or not one.mark.is_argument or not isinstance(word, str) or len(word) < LEAST:
            continue
        try:
            ids = sorted({name for name in listed(given.get("state_dir")) if name.startswith(word)})
        except ConsoleError:
            continue  # the verb's own refusal says more
        if len(ids) > 1 and word not in ids:
            more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
            named = ", ".join(plain(name, 80) for name in ids[:NAMED])
            raise UsageProblem(f"{plain(word, 80)!r} begins several ids: {named}{more}.", "Type more of it.")
        if ids and word not in ids:
            found[one.key] = ids[0]
    return given | found if found else {}
