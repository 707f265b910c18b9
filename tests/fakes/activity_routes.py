"""The routes behind the activity page of the stand-in supervisor: the real store over generated feeds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from console.api.agents.activity import ActivityEntryView, ActivityPage
from console.api.messages import ErrorView, OutputView
from console.domain.activity import Entry, Kind
from console.ledger.activity import ActivityStore
from console.ledger.activity_file import Bounds
from console.services.activity.routes import row_of
from tests.fakes.view_answers import say

HOSTILE = (
    "<b>APPROVED</b> <img src='/etc/icon.png'>",
    "\u202egnitset\u202c a\u2066b\u2069c zero\u200bwidth",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 line\rover",
    "z" + "\u0301" * 5000,
    "long " + "n" * 100_000,
    "javascript:alert(1) file:///etc/passwd =HYPERLINK(1)",
    "\ud800 \x00 \ufeff",
    "Allowed\n\n\n\n\nverdict: allow",
)


def feed(many: int, now: float, child: str = "linux-x64") -> list[Entry]:
    """``many`` entries of a believable session, the newest now."""
    found: list[Entry] = []
    turn, at = 0, now - many * 2.0
    while len(found) < many:
        turn += 1
        for entry in _turn(turn, child):
            at += 2.0
            found.append(
                Entry(**{n: getattr(entry, n) for n in Entry.__dataclass_fields__} | {"at": at, "source_id": f"{len(found)}", "turn": turn})
            )
    return found[-many:] if many else []


def _turn(n: int, child: str) -> Iterable[Entry]:
    yield Entry(Kind.MESSAGE, "", text=f"Make the build of target {n} pass on arm64\nand say what you changed.", who="user")
    yield Entry(Kind.THINKING, "", text="The failing test compares floats; I look at it before I touch anything.", who="assistant")
    yield Entry(Kind.SPEND, "", tool="claude-sonnet-4-5", text="6,156 in (4,096 from the cache), 77 out", tokens=6233, cost_nano=10_099_800)
    yield Entry(Kind.TOOL_CALL, "", tool="Bash", pair=f"t{n}", text="command: ctest -j8 --output-on-failure\ndescription: Run the tests")
    yield Entry(Kind.VERDICT, "", who="hook PreToolUse:Bash", pair=f"t{n}", verdict="allow", text="policy builds, rule 4", audit=1200 + n)
    yield Entry(
        Kind.TOOL_RESULT, "", pair=f"t{n}", text="97% tests passed, 1 tests failed out of 33\nThe following tests FAILED:\n  12 - fpu"
    )
    yield Entry(Kind.TOOL_CALL, "", tool="Write", pair=f"w{n}", text="file_path: /work/src/fpu.c\ncontent: static const double eps = 1e-9;")
    yield Entry(
        Kind.VERDICT, "", who="agent:linux", pair=f"w{n}", verdict="allow", text="workspace: write", audit=1300 + n, rollback_id="r-20418"
    )
    yield Entry(Kind.FILE, "", tool="edit", ref="/work/src/fpu.c", pair=f"w{n}", text="edit +3 −1", rollback_id="r-20418")
    yield Entry(Kind.TOOL_CALL, "", tool="WebFetch", pair=f"f{n}", text="url: https://paste.example.org/raw/9")
    yield Entry(Kind.VERDICT, "", who="the program", pair=f"f{n}", verdict="deny", text="not in the allowlist", audit=1400 + n)
    yield Entry(Kind.SPAWN, "", ref=child, text="count the warnings")
    yield Entry(Kind.ERROR, "", who="assistant", failed=True, text="API Error: 529 overloaded; tried again in 4 s")
    yield Entry(Kind.MESSAGE, "", text="Done: the comparison now uses an epsilon. One test is left.", who="assistant")
    yield Entry(Kind.SPEND, "", tool="local-llama", text="900 in (0 from the cache), 40 out; unpriced", tokens=940)


class FakeActivity:
    """``keep`` gives an agent entries; tests set ``words`` and ``broken``."""

    def __init__(self, tell: Callable[[str, dict[str, Any]], None]) -> None:
        self._tell = tell
        self.file = Path("activity.db")
        """Where it is kept; set by the house."""
        self._store: ActivityStore | None = None
        self.words = ""
        self.broken = ""
        self.output = "line\n\x1b[31mred\u202e\n"
        self.asked: list[dict[str, str]] = []

    @property
    def store(self) -> ActivityStore:
        """Opened when it is first used."""
        if self._store is None:
            self._store = ActivityStore(self.file, Bounds(per_agent=200_000))
        return self._store

    def close(self) -> None:
        """What is kept stays in its file."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def keep(self, agent_id: str, entries: Iterable[Entry]) -> None:
        """Kept and told."""
        added, newest = self.store.add(agent_id, entries)
        self._tell("activity", {"agents": {agent_id: [newest, added]}, "more": False})

    def hostile(self, agent_id: str) -> None:
        """Everything an agent may write, in every place."""
        kinds = (Kind.MESSAGE, Kind.TOOL_CALL, Kind.TOOL_RESULT, Kind.FILE, Kind.SPAWN, Kind.ERROR, Kind.NOTE, Kind.VERDICT, Kind.SPEND)
        texts = [(kind, text) for text in HOSTILE for kind in kinds]
        self.keep(agent_id, [Entry(k, f"h{n}", time.time(), t, who=t, tool=t, ref=t, verdict=t) for n, (k, t) in enumerate(texts)])

    def routes(self) -> list[Route]:
        return [
            Route("/api/agents/{id}/activity", self._page, methods=["GET"]),
            Route("/api/agents/{id}/output", self._output, methods=["GET"]),
            Route("/api/agents/{id}/activity/{seq:int}", self._one, methods=["GET"]),
        ]

    async def _page(self, request: Request) -> Response:
        given = request.query_params
        self.asked.append(dict(given))
        if self.broken:
            return say(ErrorView(error=self.broken, remedy="Look at the disk."), 500)
        before, after = given.get("before"), given.get("after")
        agent_id = request.path_params["id"]
        found = self.store.window(
            agent_id,
            before=int(before) if before else None,
            after=int(after) if after else None,
            limit=int(given.get("limit", "200")),
            query=given.get("q", ""),
            kinds=[k for k in given.get("kind", "").split(",") if k],
        )
        held = found.holding
        return say(
            ActivityPage(
                agent_id=agent_id,
                rows=[row_of(kept) for kept in found.rows],
                count=held.count,
                oldest=held.oldest,
                newest=held.newest,
                dropped=held.dropped,
                at_start=found.at_start,
                at_end=found.at_end,
                searched_to=found.searched_to,
                words=self.words,
                output_bytes=12_400 if held.count else 0,
            )
        )

    async def _output(self, request: Request) -> Response:
        offset = int(request.query_params.get("offset", "0"))
        data = self.output.encode("utf-8", "surrogatepass")[offset:]
        text = data.decode("utf-8", "backslashreplace")
        return say(OutputView(text=text, offset=offset + len(data), total=offset + len(data), state="running"))

    async def _one(self, request: Request) -> Response:
        kept = self.store.one(request.path_params["id"], request.path_params["seq"])
        assert kept is not None
        return say(ActivityEntryView(row=row_of(kept)))
