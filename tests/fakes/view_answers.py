"""Answers of the stand-in supervisor: a view as the real one writes it, a refusal in words."""

from __future__ import annotations

from pydantic import BaseModel
from starlette.responses import Response

from console.api.messages import ErrorView


def say(view: BaseModel, status: int = 200) -> Response:
    return Response(view.model_dump_json(), status, media_type="application/json")


def refuse(status: int, error: str, remedy: str = "") -> Response:
    return say(ErrorView(error=error, remedy=remedy), status)
