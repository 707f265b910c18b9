"""Known secrets are taken out of all that leaves this process: log lines, tracebacks on stderr, and every answer of every socket."""

from __future__ import annotations

import json
import logging
import sys
import threading
import traceback
from types import TracebackType
from typing import Any

from console.credentials.redaction import Redactor
from console.services.routes.responses import SHOWN_ONCE
from console.supervisor.http.asgi import App, Message, Scope


class HidingFormatter(logging.Formatter):
    """Formats as the one it wraps, then hides: message, arguments and traceback alike."""

    def __init__(self, inner: logging.Formatter, redactor: Redactor) -> None:
        super().__init__()
        self._inner, self._redactor = inner, redactor

    def format(self, record: logging.LogRecord) -> str:
        """The line as it is written."""
        return self._redactor.redact(self._inner.format(record))


def hide_in_logs(redactor: Redactor) -> None:
    """From now on no handler of this process writes a known secret, and no uncaught exception shows one."""
    for handler in logging.getLogger().handlers:
        inner = handler.formatter or logging.Formatter()
        if isinstance(inner, HidingFormatter):
            inner = inner._inner
        handler.setFormatter(HidingFormatter(inner, redactor))

    def uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        sys.stderr.write(redactor.redact("".join(traceback.format_exception(kind, error, trace))))

    def in_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None and args.exc_type is not SystemExit:
            uncaught(args.exc_type, args.exc_value, args.exc_traceback)

    sys.excepthook = uncaught
    threading.excepthook = in_thread


def hidden(app: App, redactor: Redactor) -> App:
    """The app with known secrets taken out of its answers. A body sent whole is looked at whole, a stream event by event."""

    async def served(scope: Scope, receive: Any, send: Any) -> None:
        held: list[Message] = []
        open_to_all = False

        async def hiding(message: Message) -> None:
            nonlocal open_to_all
            if message["type"] == "http.response.start":
                open_to_all = any(name.lower() == SHOWN_ONCE for name, _ in message["headers"])
                held.append(message)
                return
            body, more = message.get("body", b""), message.get("more_body", False)
            clean = body if open_to_all else redactor.redact_bytes(body)
            if clean != body:
                clean = _sound(body, clean, redactor)
            if held:
                start = held.pop()
                if clean != body and not more:
                    start = {**start, "headers": [_resized(name, value, len(clean)) for name, value in start["headers"]]}
                await send(start)
            await send({**message, "body": clean})

        await app(scope, receive, hiding)

    return served


def _resized(name: bytes, value: bytes, size: int) -> tuple[bytes, bytes]:
    return (name, str(size).encode()) if name.lower() == b"content-length" else (name, value)


def _sound(body: bytes, clean: bytes, redactor: Redactor) -> bytes:
    """What was JSON stays JSON: a secret made of digits may have stood there as a number."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return clean  # a stream's event, or no JSON at all
    try:
        json.loads(clean)
        return clean
    except ValueError:
        return json.dumps(redactor.redact_data(data)).encode()
