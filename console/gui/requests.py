"""What the window asks of the supervisor: rows of the endpoint table, each answered later by a Pending."""

from __future__ import annotations

from typing import Any, TypeVar

from console.api import endpoints as ep
from console.api.ladder import LadderBody
from console.api.messages import RawView
from console.domain.errors import ConsoleError
from console.domain.kill import Receipt, receipt_from_json
from console.domain.message import Message
from console.gui.link.http import Link
from console.gui.link.pending import Pending

V = TypeVar("V", bound=Message)


class Requests:
    """``requests.ask(ep.LINT).then(show).failed(warn)``. What each endpoint does, takes and answers stands in ``console.api.endpoints``."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def ask(
        self, endpoint: ep.Endpoint[Any, V], *ids: str | int, body: Message | None = None, wait_s: float | None = None, **query: Any
    ) -> Pending[V]:
        """Ask an endpoint; ``ids`` fill its path in their order. ``wait_s`` replaces the endpoint's own."""
        return self._link.ask(endpoint, *ids, body=body, wait_s=wait_s, **query)

    def kill(self, body: LadderBody) -> Pending[Receipt]:
        """Kill a scope: the receipt, once every process is confirmed dead or it is known which are not."""
        return _receipt(self.ask(ep.STEP.answering(RawView), body=body))

    def receipt(self, kill_id: str) -> Pending[Receipt]:
        """The receipt of an earlier kill."""
        return _receipt(self.ask(ep.RECEIPT, kill_id))

    @property
    def in_flight(self) -> int:
        """Answers still on their way."""
        return self._link.in_flight


def _receipt(raw: Pending[RawView]) -> Pending[Receipt]:
    made: Pending[Receipt] = Pending()

    def read(view: RawView) -> None:
        try:
            made.resolve(receipt_from_json(view.root))
        except (KeyError, TypeError, ValueError):
            made.reject(ConsoleError("The receipt cannot be read.", "Run console and supervisor of the same version."))

    raw.then(read).failed(made.reject)
    return made
