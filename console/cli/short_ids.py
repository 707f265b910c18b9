"""The whole id for what a person typed instead: the beginning of an id, or an agent's name. One resolver for every verb.

A beginning is completed. A name is taken by verbs that only show something; every other verb offers the agent and does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from console.cli.link import connect, look
from console.cli.syntax import Parameter, Verb
from console.cli.terminal.plain import plain
from console.domain.errors import ConsoleError, NotFound, UsageProblem
from console.domain.ids import AGENT_ID

LEAST = 4
"""Letters of a beginning: ``a-`` alone must not stand for the only agent there is."""
NAMED = 5
_EVERYTHING = ("all", "everything", "*")


@dataclass(frozen=True, slots=True)
class _Known:
    """What an id may be of. The name is hostile."""

    id: str
    name: str = ""
    is_live: bool = True


def _agents(state_dir: str | None) -> Iterable[_Known]:
    return (_Known(one.id, one.name, one.ended_at is None) for one in look(state_dir).fleet().agents)


def _sessions(state_dir: str | None) -> Iterable[_Known]:
    return (_Known(one.session) for one in look(state_dir).fleet().agents)


def _kills(state_dir: str | None) -> Iterable[_Known]:
    with connect(state_dir) as client:
        return [_Known(one.kill_id) for one in client.receipts().receipts]


def _approvals(state_dir: str | None) -> Iterable[_Known]:
    seen = look(state_dir).approvals()
    return (_Known(one.id) for one in (*seen.waiting, *seen.decided))


_LISTS: dict[str, Callable[[str | None], Iterable[_Known]]] = {
    "AGENT": _agents,
    "--agent ID": _agents,
    "--tree ID": _agents,
    "--parent ID": _agents,
    "--again AGENT": _agents,
    "SESSION": _sessions,
    "--session ID": _sessions,
    "KILL": _kills,
    "--suspects KILL": _kills,
    "APPROVAL": _approvals,
}
"""By what a parameter is called in its help. Not in it: the id of a kill that a rearm takes, which proves that a person knows it."""

_SEVERAL = {"AGENT": "agent", "--session ID": "session"}
_SHOWN_BY = {"agent": "fleet", "session": "session list"}


def whole_ids(verb: Verb, given: dict[str, Any], *, reads: bool) -> dict[str, Any]:
    """Return the same values with whole ids; empty when no word of them stands for one.

    ``reads``: the verb changes nothing. Raises UsageProblem where a word stands for several ids, NotFound where an agent is offered.
    """
    found: dict[str, Any] = {}
    for one in verb.parameters():
        value, known = given.get(one.key), _known(one, given)
        if isinstance(value, str) and known:
            found[one.key] = _whole(value, known, reads=reads) or value
        elif isinstance(value, list) and known:
            found[one.key] = [_whole(word, known, reads=reads) or word for word in value]
    return given | found if any(given[key] != value for key, value in found.items()) else {}


def known_of_several(verb: Verb, given: dict[str, Any]) -> tuple[dict[str, Any], list[ConsoleError]]:
    """Return the values with the agents or sessions that there are, where a person named several, and why each other word is left out.

    Raises the first of these reasons where none is left.
    """
    for one in verb.parameters():
        words = given.get(one.key)
        what = _SEVERAL.get(_label(one))
        if what is None or not isinstance(words, list) or len(words) < 2 or not (known := _known(one, given)):
            continue
        ids, left_out = list[str](), list[ConsoleError]()
        for word in words:
            try:
                whole = _whole(word, known, reads=False)
                if whole is None:
                    raise NotFound(f"There is no {what} {plain(word, 80)!r}.", f"watchfloor {_SHOWN_BY[what]} lists the {what}s.")
                ids.append(whole)
            except ConsoleError as error:
                left_out.append(error)
        if not ids:
            raise left_out[0]
        return given | {one.key: ids}, left_out
    return given, []


def whole_session(word: str, state_dir: str | None) -> str | None:
    """Return the id of the session that the word is, or begins; None where there is none. Raises UsageProblem where it begins several."""
    return _whole(word, {one.id: one for one in _sessions(state_dir)}, reads=False)


def is_no_id(verb: Verb, given: dict[str, Any]) -> bool:
    """Whether what was typed for an agent cannot be an id, so that it may be a name."""
    words = [given.get(one.key) for one in verb.parameters() if _label(one) == "AGENT"]
    typed = [word for value in words if value for word in (value if isinstance(value, list) else [value])]
    return any(not AGENT_ID.match(word) for word in typed)


def _label(one: Parameter) -> str:
    metavar = one.mark.metavar.removesuffix("...").strip("[] ")
    return metavar if one.mark.is_argument else f"{one.names[-1]} {metavar}"


def _known(one: Parameter, given: dict[str, Any]) -> dict[str, _Known]:
    """By id; empty where nothing was typed, and where the list cannot be had: the verb's own refusal says more."""
    listed = _LISTS.get(_label(one))
    if listed is None or not given.get(one.key):
        return {}
    try:
        return {known.id: known for known in listed(given.get("state_dir"))}
    except ConsoleError:
        return {}


def _whole(word: str, known: dict[str, _Known], *, reads: bool) -> str | None:
    """The id that the word stands for; None: it stands for none."""
    if word in known:
        return word
    begun = sorted(name for name in known if name.startswith(word)) if len(word) >= LEAST else []
    if len(begun) > 1:
        raise UsageProblem(f"{plain(word, 80)!r} begins several ids: {_list(begun)}.", "Type more of it.")
    if begun:
        return begun[0]
    if word.lower() in _EVERYTHING and not reads:
        raise NotFound(
            f"There is no agent {plain(word, 80)!r}.", "For everything: watchfloor panic. For some: watchfloor fleet lists the agents."
        )
    called = [one for one in known.values() if one.name == word]
    ids = sorted(one.id for one in [one for one in called if one.is_live] or called)
    if len(ids) > 1:
        raise UsageProblem(f"{plain(word, 80)!r} is the name of several agents: {_list(ids)}.", "Type the id of the one you mean.")
    if ids and not reads:
        raise NotFound(
            f"There is no agent {plain(word, 80)!r}. Did you mean agent {plain(ids[0], 80)}, which has this name?",
            "Type its id: a name can be given by an agent itself.",
        )
    return ids[0] if ids else None


def _list(ids: list[str]) -> str:
    more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
    return ", ".join(plain(name, 80) for name in ids[:NAMED]) + more
