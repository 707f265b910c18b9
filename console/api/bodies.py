"""What every message is made of: requests are strict, views take unknown keys from a newer peer."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1

Name = Annotated[str, Field(max_length=200)]
Reason = Annotated[str, Field(min_length=1, max_length=500)]
Id = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]


class Request(BaseModel):
    """A request body: unknown fields and wrong types are refused, with the field named."""

    model_config = ConfigDict(extra="forbid", strict=True)


class View(BaseModel):
    """Something the supervisor shows; keys are stable, more may be added."""

    model_config = ConfigDict(extra="ignore")
