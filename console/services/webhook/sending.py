"""One delivery: the URL that may be used, the signature, and what the receiver answered.

The signature is that of Standard Webhooks 1.0 (github.com/standard-webhooks/standard-webhooks): HMAC-SHA256 over the id, the time and the
body, joined by dots. Libraries for receivers exist in most languages.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import ipaddress
import secrets
import ssl
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

import console
from console.domain.errors import UsageProblem

if TYPE_CHECKING:
    import httpx

CONNECT_S, WHOLE_S = 2.0, 10.0
ANSWER_MAX = 64 * 1024
"""Bytes of an answer that are read; what follows is not waited for."""
SHOWN = 200
"""Letters of an answer that are shown."""
PREFIX = "whsec_"
SECRET_BYTES = 32
GONE = 410
_URL_REMEDY = "Use https://HOST/PATH, or http:// to 127.0.0.1, ::1 or localhost."


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one try."""

    delivered: bool
    words: str
    """Letters that print, of ASCII alone: an answer is hostile."""
    status: int | None = None
    ms: float = 0.0


def checked_url(url: str) -> SplitResult:
    """Return the URL's parts. UsageProblem unless it is https, or http to this host alone."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise UsageProblem("That is not a URL.", _URL_REMEDY) from error
    if not host or not url.isascii() or not url.isprintable() or " " in url or "\\" in url or parts.fragment:
        raise UsageProblem("That is not a URL that a webhook can have.", _URL_REMEDY)
    if parts.scheme == "https" or (parts.scheme == "http" and _is_this_host(host)):
        return parts
    if parts.scheme == "http":
        raise UsageProblem("A webhook goes over https: on its way, http can be read and changed.", _URL_REMEDY)
    raise UsageProblem("A webhook's URL begins with https://.", _URL_REMEDY)


def _is_this_host(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def shown_url(url: str) -> str:
    """The URL as logs and people see it: scheme, host and port. Credentials, path and query may each be the secret."""
    parts = checked_url(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}/{'[hidden]' if parts.path.strip('/') or parts.query else ''}"


def new_secret() -> str:
    """A new secret in the form that receivers' libraries take."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def secret_bytes(secret: str) -> bytes:
    """The key in a secret. UsageProblem for what is none."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError) as error:
        raise UsageProblem("That is not a webhook's secret.", f"Use {PREFIX} and base64 of 24 to 64 bytes, or give none.") from error
    if not secret.startswith(PREFIX) or not 24 <= len(key) <= 64:
        raise UsageProblem("That is not a webhook's secret.", f"Use {PREFIX} and base64 of 24 to 64 bytes, or give none.")
    return key


_CLOSED = "the receiver closed the connection without an HTTP answer: does a web server listen at this URL?"


def signature(secret: str, alert_id: str, at: int, body: bytes) -> str:
    """The value of ``webhook-signature``. ``at``: seconds since the epoch, as in ``webhook-timestamp``."""
    signed = f"{alert_id}.{at}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(secret_bytes(secret), signed, hashlib.sha256).digest()).decode()


async def deliver(url: str, secret: str, alert_id: str, body: bytes) -> Outcome:
    """Send it once; never raises. Ends after WHOLE_S, whatever the receiver does."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(WHOLE_S):
            outcome = await _post(url, secret, alert_id, body)
    except TimeoutError:
        outcome = Outcome(False, f"the receiver did not answer within {WHOLE_S:g} s")
    return Outcome(outcome.delivered, outcome.words, outcome.status, round((time.monotonic() - began) * 1000, 1))


async def _post(url: str, secret: str, alert_id: str, body: bytes) -> Outcome:
    at = int(time.time())
    headers = {
        "content-type": "application/json",
        "user-agent": f"watchfloor/{console.__version__}",
        "webhook-id": alert_id,
        "webhook-timestamp": str(at),
        "webhook-signature": signature(secret, alert_id, at, body),
    }
    try:
        client = await asyncio.to_thread(_client)
    except OSError as error:
        return Outcome(False, f"this host's certificates cannot be read: {_plain(str(error))}")
    import httpx  # loaded by now

    try:
        async with client, client.stream("POST", url, content=body, headers=headers) as answer:
            said = b""
            async for piece in answer.aiter_raw():  # as it comes: what is compressed is not unpacked
                said += piece[: ANSWER_MAX - len(said)]
                if len(said) >= ANSWER_MAX:
                    break
            return _judged(answer.status_code, said)
    except httpx.ConnectTimeout:
        return Outcome(False, f"no connection within {CONNECT_S:g} s")
    except httpx.ConnectError as error:
        return Outcome(False, f"no connection: {_unconnected(error)} ({_plain(str(error))})")
    except (httpx.ReadError, httpx.WriteError):
        return Outcome(False, _CLOSED)
    except httpx.RemoteProtocolError as error:
        is_closed = str(error).startswith("Server disconnected")  # h11 has no class of its own for it
        return Outcome(False, _CLOSED if is_closed else "the receiver's answer is not HTTP: does a web server listen at this URL?")
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        return Outcome(False, f"{type(error).__name__}: {_plain(str(error))}".rstrip(": "))


def _client() -> httpx.AsyncClient:
    """A client for one delivery. Its library takes some 100 ms to load, certificates take 20: beside the loop, where a webhook is set."""
    import httpx

    limits = httpx.Timeout(WHOLE_S, connect=CONNECT_S)
    # No proxy of the environment, no redirect: the operator named one place.
    return httpx.AsyncClient(timeout=limits, trust_env=False, follow_redirects=False, verify=ssl.create_default_context())


def _unconnected(error: Exception) -> str:
    """Return what an operator looks at first; the library's own words follow it."""
    is_certificate = "certificate" in str(error).lower() or "SSL" in str(error)
    return "the receiver's certificate or TLS is refused" if is_certificate else "nothing listens at this URL, or its name is not known"


def _judged(status: int, said: bytes) -> Outcome:
    if 200 <= status < 300:
        return Outcome(True, f"delivered, answered {status}", status)
    if 300 <= status < 400:
        return Outcome(False, f"the receiver answered {status}: redirects are not followed, so set the URL that it leads to", status)
    shown = _plain(said[:SHOWN].decode("latin-1"))
    return Outcome(False, f"the receiver answered {status}" + (f": {shown}" if shown.strip() else ""), status)


def _plain(text: str) -> str:
    return "".join(x if x.isascii() and x.isprintable() else "?" for x in text[:SHOWN])
