"""Calls to the object store that end: bounded in bytes, and in seconds by closing the sockets beneath them.

The client's time-outs are per socket read, so a server that drips a byte a second is bounded by nothing (measured: 60 s
under a 2 s time-out). Here every call runs in a thread of its own; at the deadline its sockets are shut, its caller goes on.
"""

from __future__ import annotations

import email.utils
import http.client
import socket
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import google.auth
import google.auth.credentials
import google.auth.exceptions
import google.auth.transport.requests
import requests
import requests.adapters
import urllib3.connection
import urllib3.connectionpool
import urllib3.exceptions
from google.api_core.exceptions import GoogleAPIError
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage
from google.cloud.storage.exceptions import DataCorruption, InvalidResponse

GOOGLE_ENDPOINT = "https://storage.googleapis.com"
ANSWER_LIMIT = 2 * 1024 * 1024
"""Bytes of any one answer of the server (metadata, listings, media), after decompression."""
_SCOPE = "https://www.googleapis.com/auth/devstorage."
# A thread in a blocked name look-up cannot be ended; without a bound an outage would fill the process with them.
_MAX_HUNG = 8

FAULTS: tuple[type[Exception], ...] = (
    GoogleAPIError,
    google.auth.exceptions.GoogleAuthError,
    DataCorruption,
    InvalidResponse,
    requests.exceptions.RequestException,
    urllib3.exceptions.HTTPError,
    http.client.HTTPException,
    OSError,  # TimeoutError too
    ValueError,  # an answer that is not the JSON it should be
    KeyError,
    TypeError,
    AttributeError,
    RecursionError,  # JSON nested deeper than Python reads
)
"""What a faulty or hostile server, network or token endpoint makes the client raise."""

DENIED = "HTTP 403"
"""What ``words_of`` says where a permission is missing."""

T = TypeVar("T")


class BadAnswer(OSError):
    """The client made nothing of what the server sent."""


class AnswerTooLarge(BadAnswer):
    """The server sent more than the caller asked for."""


class _Sockets:
    """The connections of one lane, so that a deadline can shut them."""

    def __init__(self) -> None:
        self._open: weakref.WeakSet[Any] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._shut = False

    def add(self, connection: Any) -> None:
        with self._lock:
            self._open.add(connection)
            late = self._shut
        if late:
            _shut(connection)

    def shut_all(self) -> None:
        with self._lock:
            self._shut = True
            connections = list(self._open)
        for connection in connections:
            _shut(connection)


def _shut(connection: Any) -> None:
    sock = getattr(connection, "sock", None)
    if isinstance(sock, socket.socket):
        try:
            socket.socket.shutdown(sock, socket.SHUT_RDWR)  # below TLS: a TLS goodbye could block
        except OSError:
            pass


class ServerClock:
    """How far this host's wall clock is off, by the Date of the server's answers (RFC 9110: whole seconds). It decides nothing."""

    def __init__(self) -> None:
        self._seen: tuple[float, float] | None = None

    def note(self, date: str | None) -> None:
        """One answer's Date header; anything else than a date is passed over."""
        try:
            server = email.utils.parsedate_to_datetime(date or "").timestamp()
        except (ValueError, TypeError, OverflowError):
            return
        self._seen = (round(time.time() - server - 0.5, 1), time.monotonic())

    def off(self) -> tuple[float, float] | None:
        """(this host's clock minus the server's, age of that measurement), both in seconds; None: never measured."""
        seen = self._seen
        return None if seen is None else (seen[0], time.monotonic() - seen[1])


class _Adapter(requests.adapters.HTTPAdapter):
    """Registers every connection, and reads every answer up to ANSWER_LIMIT and no further."""

    def __init__(self, sockets: _Sockets, clock: ServerClock) -> None:
        self._sockets = sockets
        self._clock = clock
        # No retries below us: they would spend the deadline on one answer, and a poll follows in seconds anyway.
        super().__init__(pool_connections=2, pool_maxsize=2, max_retries=0)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:  # type: ignore[no-untyped-call,unused-ignore]
        super().init_poolmanager(*args, **kwargs)  # type: ignore[no-untyped-call,unused-ignore]
        self._watch(self.poolmanager)  # type: ignore[attr-defined,unused-ignore]

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(*args, **kwargs)  # type: ignore[no-untyped-call,unused-ignore]
        self._watch(manager)
        return manager

    def _watch(self, manager: Any) -> None:
        sockets = self._sockets

        class Plain(urllib3.connection.HTTPConnection):
            def connect(self) -> None:
                super().connect()
                sockets.add(self)

        class Secure(urllib3.connection.HTTPSConnection):
            def connect(self) -> None:
                super().connect()
                sockets.add(self)

        class PlainPool(urllib3.connectionpool.HTTPConnectionPool):
            ConnectionCls = Plain  # type: ignore[assignment,unused-ignore]

        class SecurePool(urllib3.connectionpool.HTTPSConnectionPool):
            ConnectionCls = Secure  # type: ignore[assignment,unused-ignore]

        manager.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}

    def send(self, request: Any, stream: bool = False, **kwargs: Any) -> requests.Response:  # type: ignore[override]
        response = super().send(request, stream=True, **kwargs)
        pieces, size = [], 0
        try:
            # Counted after decompression: a few kilobytes of gzip may hold gigabytes.
            for piece in response.raw.stream(16384, decode_content=True):
                size += len(piece)
                if size > ANSWER_LIMIT:
                    raise AnswerTooLarge(f"the answer is larger than {ANSWER_LIMIT} bytes")
                pieces.append(piece)
        except BaseException:
            response.close()
            raise
        self._clock.note(response.headers.get("Date"))
        response._content = b"".join(pieces)
        response._content_consumed = True  # type: ignore[attr-defined]
        response.raw.release_conn()
        return response


class _Box(Generic[T]):
    def __init__(self) -> None:
        self.done = threading.Event()
        self.value: T | None = None
        self.error: Exception | None = BadAnswer("the client failed at the answer")
        """What it comes to unless it ends well: whatever else an answer makes the client raise is a fault too, and ends no poller."""


class Lane:
    """One client, reused, for one caller at a time. ``run`` returns or raises by its deadline, whatever the server does."""

    def __init__(
        self,
        name: str,
        *,
        endpoint: str | None,
        credentials: google.auth.credentials.Credentials | None = None,
        writes: bool = False,
    ) -> None:
        self._name = name
        self._scope = _SCOPE + ("read_write" if writes else "read_only")
        self._endpoint = endpoint
        self._credentials = credentials
        self.clock = ServerClock()
        self._busy = threading.Lock()
        self._client: storage.Client | None = None
        self._sockets = _Sockets()
        self._hung: list[threading.Thread] = []

    def run(self, work: Callable[[storage.Client, Callable[[], float]], T], deadline_s: float) -> T:
        """Runs ``work(client, seconds_left)``; TimeoutError at the deadline, else what ``work`` returns or one of FAULTS."""
        end = time.monotonic() + deadline_s
        if not self._busy.acquire(timeout=deadline_s):
            raise TimeoutError("another call is still running")
        try:
            return self._run(work, end)
        finally:
            self._busy.release()

    def _run(self, work: Callable[[storage.Client, Callable[[], float]], T], end: float) -> T:
        self._hung = [t for t in self._hung if t.is_alive()]
        if len(self._hung) >= _MAX_HUNG:
            raise TimeoutError(f"{len(self._hung)} earlier calls still hang")
        box: _Box[T] = _Box()
        sockets = self._sockets
        known = self._client

        def call() -> None:
            try:
                client = known or self._connect(sockets)
                if self._sockets is sockets:
                    self._client = client
                box.value = work(client, lambda: max(0.0, end - time.monotonic()))
                box.error = None
            except FAULTS as error:
                box.error = error
            finally:
                box.done.set()

        thread = threading.Thread(target=call, name=f"remotekill-{self._name}", daemon=True)
        thread.start()
        if not box.done.wait(max(0.0, end - time.monotonic())):
            self._abandon(thread)
            raise TimeoutError("no complete answer before the deadline")
        thread.join(1.0)
        if box.error is not None:
            raise box.error
        return box.value  # type: ignore[return-value]

    def _abandon(self, thread: threading.Thread) -> None:
        self._client = None
        self._sockets, old = _Sockets(), self._sockets
        old.shut_all()
        thread.join(0.2)
        self._hung.append(thread)

    def _connect(self, sockets: _Sockets) -> storage.Client:
        tokens = requests.Session()
        self._mount(tokens, sockets)
        token_request = google.auth.transport.requests.Request(tokens)  # type: ignore[no-untyped-call,unused-ignore]
        credentials = self._credentials
        if credentials is None and self._endpoint:
            credentials = AnonymousCredentials()  # type: ignore[no-untyped-call,unused-ignore]
        if credentials is None:
            credentials, _ = google.auth.default(scopes=[self._scope], request=token_request)
        session = google.auth.transport.requests.AuthorizedSession(  # type: ignore[no-untyped-call,unused-ignore]
            credentials, auth_request=token_request, refresh_timeout=4
        )
        self._mount(session, sockets)
        # The endpoint is always given: STORAGE_EMULATOR_HOST in the environment must not redirect a kill channel.
        client = storage.Client(
            project="watchfloor",
            credentials=credentials,
            _http=session,
            client_options={"api_endpoint": self._endpoint or GOOGLE_ENDPOINT},
        )
        # Off: from 3.17 on the client asks for the bucket's own metadata in a thread of its own, for tracing; the poller may not.
        client._bucket_metadata_cache = None
        return client

    def _mount(self, session: requests.Session, sockets: _Sockets) -> None:
        if self._endpoint:
            session.trust_env = False  # a stand-in on loopback is not reached through a proxy
        adapter = _Adapter(sockets, self.clock)
        session.mount("https://", adapter)
        session.mount("http://", adapter)

    def close(self) -> None:
        """Shuts every socket; a call under way ends with a fault."""
        self._sockets.shut_all()
        client, self._client = self._client, None
        if client is not None:
            client.close()
        self._sockets = _Sockets()


def words_of(error: Exception) -> str:
    """A short reason for a person: the kind and, from Google's errors, the status. Hostile text is cut."""
    code = getattr(error, "code", None)
    if isinstance(code, int):
        return f"HTTP {int(code)}"
    if isinstance(error, TimeoutError | requests.exceptions.Timeout | urllib3.exceptions.TimeoutError):
        return "no answer in time"
    if isinstance(error, BadAnswer):
        return str(error)
    if isinstance(error, requests.exceptions.ConnectionError | urllib3.exceptions.ProtocolError | ConnectionError):
        return "connection refused or lost"
    if isinstance(error, google.auth.exceptions.GoogleAuthError):
        return "no usable Google credentials"
    return type(error).__name__
