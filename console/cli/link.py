"""The command line's way to the supervisor that runs, and from words to request bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from console.api.client.reading import ReadingClient
from console.cli.options import seek_places
from console.cli.terminal.plain import plain
from console.domain.errors import UsageProblem
from console.settings.places import Places, choose_state_dir

if TYPE_CHECKING:
    from console.api.client.api_client import ApiClient
    from console.domain.message import Message

B = TypeVar("B", bound="Message")
_CHOICES = "Input should be '"
"""How a message names the words that a field takes."""


def connect(state_dir: str | None, timeout_s: float = 10, *, starts: bool = False) -> ApiClient:
    """A client of the instance. Raises NotFound when there is none; the first request tells whether it answers.

    ``starts``: for a verb that sets something up. Before the first agent, it starts the account's own supervisor.
    """
    from console.api.client.api_client import ApiClient

    if starts:
        from console.cli.embedded import start_own

        start_own(state_dir)
    return ApiClient(_served(state_dir), timeout_s)


def look(state_dir: str | None) -> ReadingClient:
    """As `connect`, for a verb that only looks: it loads in a fraction of the time."""
    return ReadingClient(_served(state_dir))


def _served(state_dir: str | None) -> Places:
    places = seek_places(state_dir)
    if places is None:
        from console.killswitch.client.moved_instance import why_no_instance

        raise why_no_instance(choose_state_dir(state_dir)[0])
    return places


def build(body: type[B], **fields: Any) -> B:
    """A request body from what a person typed. Raises UsageProblem that names the field."""
    from console.domain.message import Malformed

    try:
        return body.made(**fields)
    except Malformed as error:
        choices = error.words.removeprefix(_CHOICES)
        if choices != error.words:
            option, given = f"--{error.where.removesuffix('_mode')}", fields.get(error.where)
            takes = choices.replace("'", "")
            words = f"{option} takes {takes}, not {plain(str(given), 60)!r}."
            raise UsageProblem(words, "watchfloor run --help shows what each does.") from error
        raise UsageProblem(f"{error.where or 'the request'}: {error.words}.", "Add --help to the verb: it shows what it takes.") from error
