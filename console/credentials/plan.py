"""The rotation plan as data: which further secrets are replaced after a kill, how, and which verifier must then refuse the old value.

It is the file ``rotation.json`` of the state directory, read again for every rotation. A broken plan is an error that names the field. It
never counts as empty.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from console.domain.errors import ConsoleError

FILE = "rotation.json"
OWN_ITEMS = ("signing-key", "operator-tokens", "agent-tokens", "api-key")
"""Always rotated, with or without a plan."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")
_LIMIT = 1024 * 1024
_TELLING = ("authorization", "cookie", "key", "token", "secret", "password")

Seconds = Annotated[float, Field(gt=0, le=60)]
Status = Annotated[int, Field(ge=100, le=599)]
Code = Annotated[int, Field(ge=0, le=255)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Command(_Part):
    """A program: absolute path, arguments, no shell. It gets values on its standard input, never as arguments."""

    argv: Annotated[list[Annotated[str, Field(max_length=4096)]], Field(min_length=1, max_length=64)]
    timeout_s: Seconds = 10.0

    @field_validator("argv")
    @classmethod
    def _absolute(cls, argv: list[str]) -> list[str]:
        if not argv[0].startswith("/"):
            raise ValueError("the program needs an absolute path")
        if any("\0" in word for word in argv):
            raise ValueError("an argument holds a NUL")
        return argv


class Http(_Part):
    """A request: https, or http to this very machine. Values go into headers and body, never into the URL."""

    url: Annotated[str, Field(max_length=2000)]
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    headers: Annotated[dict[str, str], Field(max_length=32)] = {}
    body: dict[str, Any] | str | None = None
    """An object is sent as JSON."""
    ca_file: str = ""
    """Certificates to trust instead of the system's (PEM)."""
    timeout_s: Seconds = 10.0

    @field_validator("url")
    @classmethod
    def _near_or_sealed(cls, url: str) -> str:
        parts = urlsplit(url)
        if "{" in url or "}" in url:
            raise ValueError("no placeholder may stand in a URL: URLs are logged")
        if not url.isascii() or not url.isprintable() or " " in url:
            raise ValueError("it holds characters that no URL has")
        if not parts.hostname or parts.username is not None or parts.fragment:
            raise ValueError("it needs a host, and neither user nor fragment")
        _ = parts.port  # ValueError when it is none
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
            raise ValueError(f"https only, or http to {', '.join(LOOPBACK)}")
        return url

    def holds(self, placeholder: str) -> bool:
        """Whether the placeholder stands in a header or the body."""
        return any(placeholder in text for text in self.headers.values()) or placeholder in json.dumps(self.body)

    def secrets(self) -> list[str]:
        """Return the values in the plan that must not appear in a log: those of headers with a telling name."""
        return [value for name, value in self.headers.items() if any(word in name.lower() for word in _TELLING) and "{" not in value]


class CommandVerifier(Command):
    """Presents a value, given as one line on standard input: its exit code says what became of it."""

    kind: Literal["command"]
    refused: Annotated[list[Code], Field(min_length=1)] = [1]
    accepted: Annotated[list[Code], Field(min_length=1)] = [0]

    @model_validator(mode="after")
    def _apart(self) -> CommandVerifier:
        if set(self.refused) & set(self.accepted):
            raise ValueError("an exit code cannot mean both refused and accepted")
        return self


class HttpVerifier(Http):
    """Presents a value in place of ``{value}``: the status says what became of it."""

    kind: Literal["http"]
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    refused: Annotated[list[Status], Field(min_length=1)] = [401, 403]
    accepted: Annotated[list[Status], Field(min_length=1)] = [200, 204]

    @model_validator(mode="after")
    def _apart(self) -> HttpVerifier:
        if set(self.refused) & set(self.accepted):
            raise ValueError("a status cannot mean both refused and accepted")
        if not self.holds("{value}"):
            raise ValueError("the value is presented nowhere: put {value} into a header or the body")
        return self


Verifier = Annotated[CommandVerifier | HttpVerifier, Field(discriminator="kind")]


class _Item(_Part):
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    verify: Verifier

    @field_validator("name")
    @classmethod
    def _free(cls, name: str) -> str:
        if name in OWN_ITEMS:
            raise ValueError("that name is Watchfloor's own")
        return name


class CommandItem(_Item):
    """Replaced by a program. It reads one line of JSON, {"item", "old", "new"}, and must bear being run twice with the same one."""

    kind: Literal["command"]
    command: Command
    prints_value: bool = False
    """The other side makes the value: the program prints it, alone, on its standard output. ``new`` is empty then."""


class HttpItem(_Item):
    """Replaced by one request, with {old} and {new}; any 2xx is a yes. It must bear being sent twice with the same values."""

    kind: Literal["http"]
    request: Http
    answer_field: Annotated[str, Field(max_length=200)] = ""
    """The other side makes the value: where it stands in the JSON of the answer, as ``data.key``."""

    @model_validator(mode="after")
    def _says_the_new_one(self) -> HttpItem:
        if not self.answer_field and not self.request.holds("{new}"):
            raise ValueError("the new value is sent nowhere: put {new} into a header or the body, or name answer_field")
        return self


class KeyringItem(_Item):
    """An entry of the desktop's keyring that another program reads."""

    kind: Literal["keyring"]
    service: Annotated[str, Field(min_length=1, max_length=200)]
    username: Annotated[str, Field(min_length=1, max_length=200)]

    @field_validator("service")
    @classmethod
    def _not_ours(cls, service: str) -> str:
        if service.startswith("watchfloor-"):
            raise ValueError("entries of Watchfloor itself are not for a plan")
        return service


class FileItem(_Item):
    """A file that holds the value and nothing else; replaced whole, 0600, its owner kept."""

    kind: Literal["file"]
    path: Annotated[str, Field(min_length=2, max_length=4096)]

    @field_validator("path")
    @classmethod
    def _absolute(cls, path: str) -> str:
        if not path.startswith("/") or "\0" in path or ".." in Path(path).parts:
            raise ValueError("it needs an absolute path without ..")
        return path


Item = Annotated[CommandItem | HttpItem | KeyringItem | FileItem, Field(discriminator="kind")]


class Plan(_Part):
    """All of it, in the order in which it is carried out."""

    schema_version: Literal[1]
    items: Annotated[list[Item], Field(max_length=64)] = []

    @model_validator(mode="after")
    def _once(self) -> Plan:
        names = [item.name for item in self.items]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"the name {name!r} stands there twice")
        return self

    def secrets(self) -> list[str]:
        """Values that the plan itself holds."""
        found: list[str] = []
        for item in self.items:
            if isinstance(item.verify, Http):
                found += item.verify.secrets()
            if isinstance(item, HttpItem):
                found += item.request.secrets()
        return found


def load_plan(path: Path) -> Plan:
    """Return the current plan; without a file the empty one. Raises ConsoleError with the wrong field, or the file's wrong owner."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return Plan(schema_version=1)
    except OSError as error:
        raise _broken(path, f"it cannot be read: {error.strerror}") from error
    with os.fdopen(descriptor, "rb") as file:
        seen = os.fstat(descriptor)
        if not stat.S_ISREG(seen.st_mode) or seen.st_uid not in (0, os.geteuid()) or seen.st_mode & 0o077:
            raise _broken(path, "it runs programs, and is open to other accounts or belongs to one", f"chmod 600 {path}, and own it.")
        raw = file.read(_LIMIT + 1)
    if len(raw) > _LIMIT:
        raise _broken(path, "it is over 1 MiB")
    try:
        plan = Plan.model_validate_json(raw)
    except ValidationError as error:
        # Only place and words of the error: its input may be a secret.
        first = error.errors(include_input=False, include_context=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise _broken(path, f"{where}: {first['msg']}") from error
    for item in plan.items:
        if isinstance(item, FileItem) and path.parent in Path(item.path).parents:
            raise _broken(path, f"{item.name}: files of the state directory are not for a plan")
    return plan


def _broken(path: Path, why: str, remedy: str = "Fix it. Until then every rotation counts as failed.") -> ConsoleError:
    return ConsoleError(f"The rotation plan {path} is broken: {why}.", remedy)
