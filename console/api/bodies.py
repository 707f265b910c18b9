"""What every message is made of: requests are strict, views take unknown keys from a newer peer."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Literal, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from console.api.message import SCHEMA_VERSION as SCHEMA_VERSION
from console.api.message import Malformed, parsed

Name = Annotated[str, Field(max_length=200)]
Reason = Annotated[str, Field(min_length=1, max_length=500)]
Id = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]


class OldMessage(BaseModel):
    """What `console.api.message.Message` can do, for messages that are not such yet."""

    @classmethod
    def read(cls, data: Any) -> Self:
        """A message of what JSON holds. Raises Malformed."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise _malformed(error) from error

    @classmethod
    def made(cls, **fields: Any) -> Self:
        """A message of these fields, checked. Raises Malformed."""
        return cls.read(fields)

    @classmethod
    def read_json(cls, raw: bytes | str) -> Self:
        """A message of JSON. Raises Malformed."""
        try:
            return cls.model_validate_json(raw)
        except ValidationError as error:
            if error.errors(include_url=False)[0]["type"] == "json_invalid":
                parsed(raw)
            raise _malformed(error) from error

    def to_json(self) -> str:
        """The message as JSON. Raises ValueError for text that is not valid Unicode."""
        return self.model_dump_json()

    def as_data(self, *, exclude: Collection[str] = ()) -> dict[str, Any]:
        """The fields, with what they hold."""
        return self.model_dump(exclude=set(exclude))

    def replaced(self, **fields: Any) -> Self:
        """The same message with other values in some fields."""
        return self.model_copy(update=fields)

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """The names of its fields."""
        return tuple(cls.model_fields)


class AnyMessage(Protocol):
    """A message, of either kind."""

    @classmethod
    def made(cls, **fields: Any) -> Self: ...

    @classmethod
    def read_json(cls, raw: bytes | str) -> Self: ...

    def to_json(self) -> str: ...

    def as_data(self, *, exclude: Collection[str] = ()) -> dict[str, Any]: ...


def _malformed(error: ValidationError) -> Malformed:
    first = error.errors(include_url=False, include_context=False)[0]
    return Malformed(tuple(str(part) for part in first["loc"]), first["msg"])


class Request(OldMessage):
    """A request body: unknown fields and wrong types are refused, with the field named."""

    model_config = ConfigDict(extra="forbid", strict=True)


class View(OldMessage):
    """Something the supervisor shows; keys are stable, more may be added."""

    model_config = ConfigDict(extra="ignore")


class StartBody(Request):
    """What the start of anybody may say, agent or program."""

    name: Name = ""
    context_id: Id | None = None
    sandbox: Literal["none", "bubblewrap", "docker", "gvisor"] = "none"
    sensitivity: Literal["PUBLIC", "INTERNAL", "CONFIDENTIAL", "SECRET"] = "PUBLIC"
    network_mode: Literal["FULL", "PROXIED", "NONE"] | None = None
    limits: dict[str, float] = {}
    tree_limits: dict[str, float] = {}
    env: dict[str, str] = {}
    agent_type: Annotated[str, Field(max_length=63)] = ""
    """Whose settings hold; empty: of a program its own name."""
    project: Annotated[str, Field(max_length=400)] = ""
    """What it is charged to besides its session; empty: its session. Children have their parent's."""
    scopes: Annotated[list[str] | None, Field(max_length=20)] = None
    """READ_FS WRITE_FS DELETE_FS READ_DB WRITE_DB SEND_EMAIL CALL_API RUN_CODE; None: what its parent has, or the options say."""
    dry_run: bool = False
    """Its calls are judged and planned, not executed, until an operator says otherwise."""
    unmeasured: bool = False
    """A limit on cost is accepted though nothing measures what it spends; without it that is refused."""
