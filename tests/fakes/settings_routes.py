"""The routes of the settings in the stand-in supervisor: the product's own desk over real files, with a record that can refuse."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from console.domain.engine.command import Record
from console.domain.errors import ConsoleError, NotRecorded
from console.services.configuration.routes import settings_routes
from console.services.configuration.service import SettingsDesk
from console.services.routes.responses import Handler, refusal, routed
from console.settings.layers import in_force
from console.settings.places import Places


class FakeSettings:
    """Settings of ``places``; what was recorded and told is kept."""

    def __init__(self, places: Places) -> None:
        self.records: list[Record] = []
        self.notices: list[str] = []
        self.refuses = False
        self.desk = SettingsDesk(places, in_force(places), self, self.notice)

    def record(self, record: Record) -> None:
        self.records.append(record)

    def record_first(self, record: Record) -> None:
        if self.refuses:
            raise NotRecorded("The log is full.", "Make room.")
        self.records.append(record)

    def notice(self, text: str, level: str = "amber") -> None:
        self.notices.append(text)

    def routes(self) -> list[Route]:
        made = settings_routes(self.desk, lambda _request: "operator:1000")
        return routed({row: _refusing(handler) for row, handler in made.items()})


def _refusing(handler: Handler) -> Handler:
    async def served(request: Request) -> Response:
        try:
            return await handler(request)
        except ConsoleError as error:
            return refusal(error)

    return served
