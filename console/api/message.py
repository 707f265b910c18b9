"""What messages are made of: requests are strict, views take unknown keys from a newer peer."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from console.domain.message import Message

SCHEMA_VERSION = 1

Name = Annotated[str, Meta(max_length=200)]
Reason = Annotated[str, Meta(min_length=1, max_length=500)]
# ``\Z``: Python's ``$`` lets a line break at the end pass.
Id = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,62}\Z")]


class Request(Message, kw_only=True, forbid_unknown_fields=True):
    """A request body: unknown fields and wrong types are refused, with the field named."""


class View(Message, kw_only=True):
    """Something the supervisor shows; keys are stable, more may be added."""
