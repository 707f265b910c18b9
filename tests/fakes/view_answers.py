"""Answers of the stand-in supervisor: a view as the real one writes it, a refusal in words."""

from __future__ import annotations

from starlette.responses import Response

from console.api.messages import ErrorView
from console.domain.message import Message


def say(view: Message, status: int = 200) -> Response:
    return Response(view.to_json(), status, media_type="application/json")


def refuse(status: int, error: str, remedy: str = "") -> Response:
    return say(ErrorView(error=error, remedy=remedy), status)
