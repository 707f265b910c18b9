"""``watchfloor activity AGENT``: what an agent did: messages, tool calls with verdict and result, spend, children, files.

``watchfloor run --agent PROGRAM --wait`` shows the same lines on stderr, and the program's answers on stdout.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Annotated

from console.api.agents.activity import ActivityPage, ActivityRow
from console.api.client.api_client import ApiClient
from console.api.messages import OutputView
from console.cli.agents.output import END
from console.cli.link import connect
from console.cli.options import Json, StateDir
from console.cli.syntax import Argument, Option, example
from console.cli.terminal import out
from console.cli.terminal.plain import moment, plain, plain_block
from console.cli.terminal.tables import Text
from console.domain.amounts import fine_usd
from console.domain.process.account import named_here

_LOOK_S = 0.5
_LATE_S = 5.0
"""How long entries may come after the end of a program of which no record says that it ended, such as one that was killed."""
_PAGE = 500
_LINES = 12
_WIDE = 2000
_STYLES = {"error": "red", "message": "bold", "spend": "dim", "note": "dim", "thinking": "dim"}


@example("a-1b2c3d4e --follow")
def activity(
    agent: Annotated[str, Argument(metavar="AGENT")],
    count: Annotated[int, Option("--rows", "-n", min=1, max=500, help="Entries shown first.")] = 50,
    search: Annotated[str, Option("--filter", metavar="TEXT", help="Only entries that hold it.")] = "",
    kind: Annotated[list[str] | None, Option("--kind", help="message, tool_call, file, error ...; repeatable.")] = None,
    follow: Annotated[bool, Option("--follow", "-f", help="Go on with new ones until Ctrl-C.")] = False,
    whole: Annotated[bool, Option("--whole", help="All that is kept of each text.")] = False,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """What an agent did, live: messages, tool calls, verdicts, results, spend, children, files. With --follow and --json: one a line."""
    kinds = tuple(kind or ())
    with connect(state_dir) as client:
        page = _search_on(client, agent, client.activity(agent, limit=count, query=search, kinds=kinds), count, search, kinds)
        if as_json and not follow:
            out.emit(page.as_data(exclude={"schema_version"}) | {"rows": [_whole(client, agent, r, whole).as_data() for r in page.rows]})
            return 0
        if not as_json:
            _head(page)
        last = page.newest
        for row in page.rows:
            _show(_whole(client, agent, row, whole), as_json=as_json, whole=whole)
        while follow and not out.gone():
            time.sleep(_LOOK_S)
            page = client.activity(agent, after=last, limit=_PAGE, query=search, kinds=kinds)
            for row in page.rows:
                _show(_whole(client, agent, row, whole), as_json=as_json, whole=whole)
            last = _read_to(page, last)
    return 0


def follow_answers(client: ApiClient, agent: str, beside: Callable[[], None]) -> OutputView | None:
    """Show on stderr what a started program does, and on stdout the answer of each turn, until it has ended.

    Returns the last state of its output. None: the reader of stdout went away. Raises Unavailable when no activity is kept.
    ``beside`` is called before each look.
    """
    answers, last, news_at = _Answers(client, agent), 0, time.monotonic()
    while not out.gone():
        beside()
        seen = client.output(agent, END)  # before the entries: one that has ended by now has told all but the last of them
        page = client.activity(agent, after=last, limit=_PAGE)
        for row in page.rows:
            answers.take(row)
        last, news_at = _read_to(page, last), time.monotonic() if page.rows else news_at
        if not seen.live and not page.rows and (answers.is_over or time.monotonic() - news_at > _LATE_S):
            answers.give()
            return seen
        if len(page.rows) < _PAGE:
            time.sleep(_LOOK_S)
    return None


class _Answers:
    """The entries of one program: the last message of a turn is its answer, everything else is shown as it comes."""

    def __init__(self, client: ApiClient, agent: str) -> None:
        self._client, self._agent = client, agent
        self._last: ActivityRow | None = None
        self.is_over = False
        """Whether the record of its end was seen, which comes after all that it told."""

    def take(self, row: ActivityRow) -> None:
        """Show an entry, or keep it until it is known whether it was the last message."""
        self.is_over |= bool(row.audit) and row.text.startswith("agent.ended: ")
        if row.who == "program" and row.text.startswith("turn "):
            said = self.give()
            if said and f"turn ended: {said}".startswith(row.text):
                return  # some programs repeat their answer, of which an entry may hold the beginning
        is_answer = row.kind == "message" and row.who == "assistant"
        if self._last is not None and (is_answer or row.kind == "tool_call"):
            _show_aside(self._last)
        if is_answer or row.kind == "tool_call":
            self._last = row if is_answer else None
        if not is_answer:
            _show_aside(row)

    def give(self) -> str:
        """Write the answer that there is to stdout. Returns its beginning."""
        row, self._last = self._last, None
        if row is None:
            return ""
        row = _whole(self._client, self._agent, row, whole=True)
        out.write(plain_block(row.text).rstrip("\n") + "\n")
        if row.left_out:
            out.note(f"The answer has {row.left_out:,} more characters. Its end: watchfloor agent output {plain(self._agent, 70)}")
        return row.text


def _read_to(page: ActivityPage, last: int) -> int:
    return page.rows[-1].seq if len(page.rows) == _PAGE else page.searched_to or max(last, page.newest)


def _search_on(client: ApiClient, agent: str, page: ActivityPage, count: int, search: str, kinds: tuple[str, ...]) -> ActivityPage:
    """A search that ran out of time goes on where it was."""
    while page.searched_to and len(page.rows) < count:
        older = client.activity(agent, before=page.searched_to, limit=count - len(page.rows), query=search, kinds=kinds)
        page = page.replaced(rows=[*older.rows, *page.rows], searched_to=older.searched_to, at_start=older.at_start)
    return page


def _whole(client: ApiClient, agent: str, row: ActivityRow, whole: bool) -> ActivityRow:
    return client.activity_entry(agent, row.seq).row if whole and row.size > len(row.text) else row


def _head(page: ActivityPage) -> None:
    if page.dropped:
        out.say(f"{page.dropped:,} older entries were dropped: only so many are kept (setting activity.per_agent).")
    if page.words:
        out.say(plain(page.words, 600))
    if not page.rows:
        out.say("Nothing is kept of this agent yet." if not page.count else "No entry matches.")


def _show(row: ActivityRow, *, as_json: bool, whole: bool) -> None:
    if as_json:
        out.emit_line(row.as_data())
    else:
        out.show(*_lines(row, whole=whole))


def _show_aside(row: ActivityRow) -> None:
    for line in _lines(row, whole=False):
        out.note(line.plain)


def _lines(row: ActivityRow, *, whole: bool) -> Iterator[Text]:
    style = "red" if row.failed or row.verdict == "deny" else _STYLES.get(row.kind, "")
    text = named_here(row.text) if row.audit else row.text  # our own record: in an agent's text a number stays as it was written
    first, *rest = plain_block(text).split("\n") if text else [""]
    yield Text(f"{moment(row.at, 'seconds')}  {_title(row)}  {first[:_WIDE]}".rstrip(), style)
    shown = rest if whole else rest[:_LINES]
    for line in shown:
        yield Text(f"          {line[:_WIDE]}", style)
    left = row.left_out + max(0, row.size - len(row.text))
    if len(shown) < len(rest) or left:
        more = f"{len(rest) - len(shown):,} more lines" if len(shown) < len(rest) else ""
        yield Text(f"          … {', '.join(w for w in (more, f'{left:,} more characters' if left else '') if w)}")


def _title(row: ActivityRow) -> str:
    parts = [row.kind.replace("_", " ")]
    parts += [plain(word, 60) for word in (named_here(row.who) if row.audit else row.who, row.tool, row.verdict) if word]
    if row.ref:
        parts.append(plain(f"in {row.ref}" if row.kind == "tool_call" else row.ref, 200))
    if row.kind == "spend":
        parts.append("unpriced" if row.cost_usd is None else fine_usd(row.cost_usd))
    if row.audit:
        parts.append(f"(audit {row.audit})")
    return " ".join(parts)
