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

from msgspec import Meta

from console.domain.errors import ConsoleError
from console.domain.message import Malformed, Message

FILE = "rotation.json"
OWN_ITEMS = ("signing-key", "operator-tokens", "agent-tokens", "api-key")
"""Always rotated, with or without a plan."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")
_LIMIT = 1024 * 1024
_TELLING = ("authorization", "cookie", "key", "token", "secret", "password")

Seconds = Annotated[float, Meta(gt=0, le=60)]
Status = Annotated[int, Meta(ge=100, le=599)]
Code = Annotated[int, Meta(ge=0, le=255)]


class _Part(Message, kw_only=True, forbid_unknown_fields=True):
    pass


class Command(_Part):
    """A program: absolute path, arguments, no shell. It gets values on its standard input, never as arguments."""

    argv: Annotated[list[Annotated[str, Meta(max_length=4096)]], Meta(min_length=1, max_length=64)]
    timeout_s: Seconds = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.argv[0].startswith("/"):
            raise Malformed(("argv",), "the program needs an absolute path")
        if any("\0" in word for word in self.argv):
            raise Malformed(("argv",), "an argument holds a NUL")


class Http(_Part):
    """A request: https, or http to this very machine. Values go into headers and body, never into the URL."""

    url: Annotated[str, Meta(max_length=2000)]
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    headers: Annotated[dict[str, str], Meta(max_length=32)] = {}
    body: dict[str, Any] | str | None = None
    """An object is sent as JSON."""
    ca_file: str = ""
    """Certificates to trust instead of the system's (PEM)."""
    timeout_s: Seconds = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if problem := _problem_of_url(self.url):
            raise Malformed(("url",), problem)

    def holds(self, placeholder: str) -> bool:
        """Whether the placeholder stands in a header or the body."""
        return any(placeholder in text for text in self.headers.values()) or placeholder in json.dumps(self.body)

    def secrets(self) -> list[str]:
        """Return the values in the plan that must not appear in a log: those of headers with a telling name."""
        return [value for name, value in self.headers.items() if any(word in name.lower() for word in _TELLING) and "{" not in value]


def _problem_of_url(url: str) -> str:
    if "{" in url or "}" in url:
        return "no placeholder may stand in a URL: URLs are logged"
    if not url.isascii() or not url.isprintable() or " " in url:
        return "it holds characters that no URL has"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        return str(error)
    if not parts.hostname or parts.username is not None or parts.fragment:
        return "it needs a host, and neither user nor fragment"
    is_near = parts.scheme == "http" and parts.hostname in LOOPBACK
    return "" if is_near or parts.scheme == "https" else f"https only, or http to {', '.join(LOOPBACK)}"


class CommandVerifier(Command, kw_only=True, tag_field="kind", tag="command"):
    """Presents a value, given as one line on standard input: its exit code says what became of it."""

    refused: Annotated[tuple[Code, ...], Meta(min_length=1)] = (1,)
    accepted: Annotated[tuple[Code, ...], Meta(min_length=1)] = (0,)

    def __post_init__(self) -> None:
        super().__post_init__()
        if set(self.refused) & set(self.accepted):
            raise Malformed((), "an exit code cannot mean both refused and accepted")


class HttpVerifier(Http, kw_only=True, tag_field="kind", tag="http"):
    """Presents a value in place of ``{value}``: the status says what became of it."""

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    refused: Annotated[tuple[Status, ...], Meta(min_length=1)] = (401, 403)
    accepted: Annotated[tuple[Status, ...], Meta(min_length=1)] = (200, 204)

    def __post_init__(self) -> None:
        super().__post_init__()
        if set(self.refused) & set(self.accepted):
            raise Malformed((), "a status cannot mean both refused and accepted")
        if not self.holds("{value}"):
            raise Malformed((), "the value is presented nowhere: put {value} into a header or the body")


class _Item(_Part, kw_only=True, tag_field="kind"):
    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,39}\Z")]
    verify: CommandVerifier | HttpVerifier

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.name in OWN_ITEMS:
            raise Malformed(("name",), "that name is Watchfloor's own")

    @property
    def kind(self) -> str:
        """How it is replaced, as the plan says it."""
        return str(self.__struct_config__.tag)


class CommandItem(_Item, kw_only=True, tag="command"):
    """Replaced by a program. It reads one line of JSON, {"item", "old", "new"}, and must bear being run twice with the same one."""

    command: Command
    prints_value: bool = False
    """The other side makes the value: the program prints it, alone, on its standard output. ``new`` is empty then."""


class HttpItem(_Item, kw_only=True, tag="http"):
    """Replaced by one request, with {old} and {new}; any 2xx is a yes. It must bear being sent twice with the same values."""

    request: Http
    answer_field: Annotated[str, Meta(max_length=200)] = ""
    """The other side makes the value: where it stands in the JSON of the answer, as ``data.key``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.answer_field and not self.request.holds("{new}"):
            raise Malformed((), "the new value is sent nowhere: put {new} into a header or the body, or name answer_field")


class KeyringItem(_Item, kw_only=True, tag="keyring"):
    """An entry of the desktop's keyring that another program reads."""

    service: Annotated[str, Meta(min_length=1, max_length=200)]
    username: Annotated[str, Meta(min_length=1, max_length=200)]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.service.startswith("watchfloor-"):
            raise Malformed(("service",), "entries of Watchfloor itself are not for a plan")


class FileItem(_Item, kw_only=True, tag="file"):
    """A file that holds the value and nothing else; replaced whole, 0600, its owner kept."""

    path: Annotated[str, Meta(min_length=2, max_length=4096)]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.path.startswith("/") or "\0" in self.path or ".." in Path(self.path).parts:
            raise Malformed(("path",), "it needs an absolute path without ..")


Item = CommandItem | HttpItem | KeyringItem | FileItem


class Plan(_Part):
    """All of it, in the order in which it is carried out."""

    schema_version: Literal[1]
    items: Annotated[list[Item], Meta(max_length=64)] = []

    def __post_init__(self) -> None:
        super().__post_init__()
        names = [item.name for item in self.items]
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise Malformed((), f"the name {twice!r} stands there twice")

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
        plan = Plan.read_json(raw)
    except Malformed as error:  # it names place and words, and holds nothing of the input, which may be a secret
        raise _broken(path, f"{error.where or 'the file'}: {error.words}") from None
    for item in plan.items:
        if isinstance(item, FileItem) and path.parent in Path(item.path).parents:
            raise _broken(path, f"{item.name}: files of the state directory are not for a plan")
    return plan


def _broken(path: Path, why: str, remedy: str = "Fix it. Until then every rotation counts as failed.") -> ConsoleError:
    return ConsoleError(f"The rotation plan {path} is broken: {why}.", remedy)
