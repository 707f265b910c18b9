"""A strict stand-in for Google Cloud Storage's JSON and media API, on loopback: what the kill channel is tested against.

Linearizable (one lock), microsecond-size generations, generation preconditions on every upload, read and delete, 304, 404,
412, 429 per object, noncurrent versions, tokens with rights per object prefix, and faults: refuse, 503, reset, black hole, drip,
huge, truncated. As the real service: without the right to list, an object that is not there answers 403, not 404.

``python -m tests.fakes.strict_gcs --port 0 --bucket NAME`` runs one as a process and prints its address.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import datetime
import email.parser
import email.policy
import hashlib
import json
import re
import socket
import socketserver
import struct
import threading
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

import google_crc32c

FAULTS = ("503", "500", "429", "403", "401", "reset", "black_hole", "drip", "drip_body", "huge", "truncated", "garbage", "nested")


@dataclass
class Stored:
    """One object."""

    body: bytes
    generation: int
    content_type: str = "application/octet-stream"
    cache_control: str = ""
    metageneration: int = 1
    written_at: float = 0.0
    replaced_at: float = 0.0
    """When it became noncurrent; 0: it is live."""


@dataclass
class Fault:
    """What goes wrong, with which requests, how often (-1: until cleared)."""

    kind: str
    method: str = ""
    """Only this method; empty: all."""
    path: str = ""
    """Only paths in which this regular expression is found."""
    times: int = -1


@dataclass
class Rights:
    """What a token may do with objects whose name begins with ``prefix``: any of get, create, delete, list; bucket: read its metadata."""

    allowed: frozenset[str]
    prefix: str = ""


class Refused(Exception):
    """An HTTP answer other than success."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass
class Bucket:
    """The store itself, without HTTP. Every operation is one atomic step."""

    name: str
    objects: dict[str, Stored] = field(default_factory=dict)
    min_write_gap_s: float = 0.0
    """Google's limit is one write a second and object name; 0: not enforced."""
    versioning: bool = False
    """What is replaced, or deleted without its generation, stays as a noncurrent version (storage/docs/object-versioning)."""
    noncurrent: dict[str, list[Stored]] = field(default_factory=dict)
    _last: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def put(self, name: str, body: bytes, conditions: dict[str, str] | None = None, content_type: str = "", cache: str = "") -> Stored:
        """Writes under the preconditions; Refused 412 or 429."""
        with self._lock:
            old = self.objects.get(name)
            check(old, conditions or {}, reading=False)
            if old and self.min_write_gap_s and time.time() - old.written_at < self.min_write_gap_s:
                raise Refused(429, "rateLimitExceeded")
            self._last = max(self._last + 1, int(time.time() * 1e6))
            stored = Stored(body, self._last, content_type or "application/octet-stream", cache, written_at=time.time())
            self._retire(name)
            self.objects[name] = stored
            return stored

    def _retire(self, name: str) -> None:
        old = self.objects.pop(name, None)
        if old is not None and self.versioning:
            old.replaced_at = time.time()
            self.noncurrent.setdefault(name, []).append(old)

    def get(self, name: str, conditions: dict[str, str]) -> Stored:
        """Reads under the preconditions; Refused 304, 404 or 412."""
        with self._lock:
            found = self.objects.get(name)
            if "generation" in conditions:
                every = [*self.noncurrent.get(name, ()), *([found] if found else [])]
                found = next((one for one in every if conditions["generation"] == str(one.generation)), None)
            if found is None:
                raise Refused(404, "notFound")
            check(found, conditions, reading=True)
            return found

    def delete(self, name: str, conditions: dict[str, str]) -> None:
        """Deletes under the preconditions; Refused 404 or 412."""
        with self._lock:
            found = self.get(name, {"generation": conditions["generation"]} if "generation" in conditions else {})
            check(found, conditions, reading=False)
            if "generation" not in conditions:
                self._retire(name)
            elif found is self.objects.get(name):
                del self.objects[name]  # with its generation it is gone for good
            else:
                self.noncurrent[name].remove(found)

    def listing(self, prefix: str, versions: bool = False) -> list[tuple[str, Stored]]:
        """Names and objects, sorted; with ``versions`` the noncurrent ones too, in order of their generations."""
        with self._lock:
            every = [(n, o) for n, o in self.objects.items() if n.startswith(prefix)]
            if versions:
                every += [(n, o) for n, olds in self.noncurrent.items() for o in olds if n.startswith(prefix)]
            return sorted(every, key=lambda one: (one[0], one[1].generation))


def check(found: Stored | None, conditions: dict[str, str], *, reading: bool) -> None:
    """cloud.google.com/storage/docs/request-preconditions: a false not-match answers 304 to a read, everything else 412."""
    generation = found.generation if found else 0
    meta = found.metageneration if found else 0
    for name, value in (("ifGenerationMatch", generation), ("ifMetagenerationMatch", meta)):
        if name in conditions and int(conditions[name]) != value:
            raise Refused(412, "conditionNotMet")
    for name, value in (("ifGenerationNotMatch", generation), ("ifMetagenerationNotMatch", meta)):
        if name in conditions and int(conditions[name]) == value:
            raise Refused(304 if reading else 412, "notModified")


class StrictGcs:
    """The server, in threads of this process. ``with StrictGcs("bucket") as gcs: gcs.url``."""

    def __init__(self, bucket: str = "fleet", port: int = 0) -> None:
        self.bucket = Bucket(bucket)
        self.tokens: dict[str, list[Rights]] = {}
        """Empty: everybody may do everything."""
        self.rights_before_conditions = False
        """Creating where an object exists is refused for the missing right to delete (403), before its precondition is (412)."""
        self.requests: list[tuple[str, str, int]] = []
        """(method, path with query, status)."""
        self.connections = 0
        self._fault: Fault | None = None
        self._sessions: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None
        self._port = port

    @property
    def url(self) -> str:
        """http://127.0.0.1:port"""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> StrictGcs:
        """Listens on loopback."""
        self._ended.clear()
        self._server = _Server(("127.0.0.1", self._port), self)
        self._port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Closes the listener and every connection; until ``start`` a connect is refused."""
        self._ended.set()
        if self._server and self._thread:
            self._server.shutdown()
            self._server.close_all()
            self._server.server_close()
            self._thread.join(60)
        self._server = None

    def __enter__(self) -> StrictGcs:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @contextlib.contextmanager
    def failing(self, kind: str, *, method: str = "", path: str = "", times: int = -1) -> Iterator[None]:
        """Requests of this kind go wrong inside the block; ``refuse`` closes the listener."""
        if kind == "refuse":
            self.stop()
            try:
                yield
            finally:
                self.start()
            return
        assert kind in FAULTS, kind
        self._fault = Fault(kind, method, path, times)
        try:
            yield
        finally:
            self._fault = None

    def fault_for(self, method: str, path: str) -> str:
        """The fault that strikes this request, or empty."""
        with self._lock:
            fault = self._fault
            if fault is None or fault.times == 0 or (fault.method and fault.method != method) or not re.search(fault.path, path):
                return ""
            fault.times -= 1
            return fault.kind

    def allow(self, token: str, *allowed: str, prefix: str = "") -> None:
        """From the first call on, only known tokens may do anything."""
        self.tokens.setdefault(token, []).append(Rights(frozenset(allowed), prefix))

    def judge(self, token: str, right: str, name: str) -> None:
        """Refused 401 without a known token, 403 without the right."""
        if self.tokens and token not in self.tokens:
            raise Refused(401, "required")
        if not self.may(token, right, name):
            raise Refused(403, "forbidden")

    def may(self, token: str, right: str, name: str) -> bool:
        """Whether this token has the right for this name."""
        return not self.tokens or any(right in r.allowed and name.startswith(r.prefix) for r in self.tokens.get(token, ()))


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], gcs: StrictGcs) -> None:
        self.gcs = gcs
        self._open: set[socket.socket] = set()
        super().__init__(address, _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, peer = super().get_request()
        self.gcs.connections += 1
        self._open.add(connection)
        return connection, peer

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def close_all(self) -> None:
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a peer that hangs up is what many tests do


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    timeout = 120
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PUT = do_DELETE = do_PATCH = do_GET  # noqa: N815

    def _serve(self) -> None:
        gcs = self.server.gcs
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else b""
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        if self.command == "POST" and url.path == "/_fault":
            gcs._fault = Fault(**json.loads(body)) if body else None
            self._answer(200, b"{}")
            return
        fault = gcs.fault_for(self.command, self.path)
        try:
            if fault.isdigit():
                raise Refused(int(fault), "fault")
            status, data, headers = self._route(url.path, query, body)
        except Refused as refused:
            status, headers = refused.status, {}
            data = b"" if status == 304 else json.dumps({"error": {"code": status, "message": str(refused)}}).encode()
        gcs.requests.append((self.command, self.path, status))
        self._send(status, data, headers, fault)

    # --- routes -------------------------------------------------------------------------------------------------------

    def _route(self, path: str, query: dict[str, str], body: bytes) -> tuple[int, bytes, dict[str, str]]:
        bucket = re.escape(self.server.gcs.bucket.name)
        upload = re.fullmatch(f"(?:/resumable)?/upload/storage/v1/b/{bucket}/o", path)
        if upload and self.command in ("POST", "PUT"):
            return self._upload(query, body)
        media = re.fullmatch(f"/download/storage/v1/b/{bucket}/o/(.+)", path)
        if media and self.command == "GET":
            return self._media(urllib.parse.unquote(media[1]), query)
        if re.fullmatch(f"/storage/v1/b/{bucket}/o", path) and self.command == "GET":
            return self._list(query)
        if re.fullmatch(f"/storage/v1/b/{bucket}", path) and self.command == "GET":
            self._judge("bucket", "")
            held = self.server.gcs.bucket
            return 200, json.dumps({"kind": "storage#bucket", "name": held.name, "versioning": {"enabled": held.versioning}}).encode(), {}
        named = re.fullmatch(f"/storage/v1/b/{bucket}/o/(.+)", path)
        if named:
            return self._object(urllib.parse.unquote(named[1]), query)
        raise Refused(404, "notFound")

    def _token(self) -> str:
        return (self.headers.get("Authorization") or "").removeprefix("Bearer ")

    def _judge(self, right: str, name: str) -> None:
        self.server.gcs.judge(self._token(), right, name)

    def _get(self, name: str, query: dict[str, str]) -> Stored:
        self._judge("get", name)
        try:
            return self.server.gcs.bucket.get(name, query)
        except Refused as refused:
            if refused.status == 404 and not self.server.gcs.may(self._token(), "list", name):
                raise Refused(403, "forbidden (or it may not exist)") from refused
            raise

    def _object(self, name: str, query: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
        bucket = self.server.gcs.bucket
        if self.command == "DELETE":
            self._judge("delete", name)
            bucket.delete(name, query)
            return 204, b"", {}
        if self.command != "GET":
            raise Refused(405, "methodNotAllowed")
        if query.get("alt") == "media":
            return self._media(name, query)
        return 200, self._metadata(name, self._get(name, query)), {}

    def _media(self, name: str, query: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
        found = self._get(name, query)
        headers = {
            "Content-Type": found.content_type,
            "X-Goog-Generation": str(found.generation),
            "X-Goog-Metageneration": str(found.metageneration),
            "X-Goog-Hash": f"crc32c={crc(found.body)}",
        }
        return 200, found.body, headers

    def _list(self, query: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
        self._judge("list", query.get("prefix", ""))
        found = self.server.gcs.bucket.listing(query.get("prefix", ""), query.get("versions", "").lower() == "true")
        first = int(query.get("pageToken") or 0)
        last = first + min(1000, int(query.get("maxResults") or 1000))
        items = [json.loads(self._metadata(name, stored)) for name, stored in found[first:last]]
        page = {"nextPageToken": str(last)} if last < len(found) else {}
        return 200, json.dumps({"kind": "storage#objects", "items": items, **page}).encode(), {}

    def _upload(self, query: dict[str, str], body: bytes) -> tuple[int, bytes, dict[str, str]]:
        kind = query.get("uploadType", "")
        if kind == "multipart":
            meta, content_type, data = self._parts(body)
            return self._store(str(meta.get("name") or query.get("name", "")), data, query, content_type, str(meta.get("cacheControl", "")))
        if kind == "media":
            return self._store(query.get("name", ""), body, query, self.headers.get("Content-Type", ""), "")
        if kind == "resumable":
            return self._resumable(query, body)
        raise Refused(400, "invalid uploadType")

    def _resumable(self, query: dict[str, str], body: bytes) -> tuple[int, bytes, dict[str, str]]:
        sessions = self.server.gcs._sessions
        if "upload_id" in query:
            session = sessions.pop(query["upload_id"], None)
            if session is None:
                raise Refused(404, "notFound")
            return self._store(session["name"], body, session["query"], session["type"], session["cache"])
        meta = json.loads(body or b"{}")
        name = str(meta.get("name") or query.get("name", ""))
        self._judge("create", name)
        check(self.server.gcs.bucket.objects.get(name), query, reading=False)
        key = hashlib.sha256(f"{time.time_ns()}{name}".encode()).hexdigest()[:24]
        kind = self.headers.get("X-Upload-Content-Type", "")
        sessions[key] = {"name": name, "query": query, "type": kind, "cache": str(meta.get("cacheControl", ""))}
        where = f"{self.server.gcs.url}/upload/storage/v1/b/{self.server.gcs.bucket.name}/o?uploadType=resumable&upload_id={key}"
        return 200, b"", {"Location": where}

    def _store(self, name: str, data: bytes, query: dict[str, str], kind: str, cache: str) -> tuple[int, bytes, dict[str, str]]:
        if not name:
            raise Refused(400, "required")
        self._judge("create", name)
        only_creates = query.get("ifGenerationMatch") == "0" and not self.server.gcs.rights_before_conditions
        if name in self.server.gcs.bucket.objects and not only_creates:
            self._judge("delete", name)  # replacing an object needs both rights
        stored = self.server.gcs.bucket.put(name, data, query, kind, cache)
        return 200, self._metadata(name, stored), {}

    def _parts(self, body: bytes) -> tuple[dict[str, Any], str, bytes]:
        header = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        boundary = email.parser.BytesHeaderParser(policy=email.policy.HTTP).parsebytes(header).get_boundary() or ""
        pieces = body.split(b"--" + boundary.encode())
        if len(pieces) != 4:
            raise Refused(400, "invalid multipart")
        (_, first), (head, second) = (p.split(b"\r\n\r\n", 1) for p in pieces[1:3])
        kind = re.search(rb"(?i)content-type:\s*([^\r\n]+)", head)
        return json.loads(first), kind[1].decode() if kind else "", second[:-2]

    def _metadata(self, name: str, stored: Stored) -> bytes:
        bucket = self.server.gcs.bucket.name
        md5 = hashlib.md5(stored.body, usedforsecurity=False).digest()
        data = {
            "kind": "storage#object",
            "name": name,
            "bucket": bucket,
            "id": f"{bucket}/{name}/{stored.generation}",
            "generation": str(stored.generation),
            "metageneration": str(stored.metageneration),
            "size": str(len(stored.body)),
            "contentType": stored.content_type,
            "cacheControl": stored.cache_control,
            "crc32c": crc(stored.body),
            "md5Hash": base64.b64encode(md5).decode(),
            "etag": base64.b64encode(str(stored.generation).encode()).decode(),
        }
        if stored.replaced_at:
            data["timeDeleted"] = datetime.datetime.fromtimestamp(stored.replaced_at, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return json.dumps(data).encode()

    # --- answers and faults -------------------------------------------------------------------------------------------

    def _send(self, status: int, data: bytes, headers: dict[str, str], fault: str) -> None:
        if not fault or fault.isdigit():
            self._answer(status, data, headers)
            return
        self.close_connection = True
        try:
            self._misbehave(fault, status, data, headers)
        except OSError:
            pass

    def _misbehave(self, fault: str, status: int, data: bytes, headers: dict[str, str]) -> None:
        ended = self.server.gcs._ended
        match fault:
            case "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
            case "black_hole":
                self._until_gone(ended)
            case "drip":
                self._drip(f"HTTP/1.1 200 OK\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data, ended)
            case "drip_body":
                self._head(status, len(data), headers)
                self._drip(data, ended)
            case "huge":
                self._head(200, 2 * 1024**3, headers)
                block = b" " * 65536
                for _ in range(2 * 1024**3 // len(block)):
                    self.wfile.write(block)
            case "truncated":
                self._head(status, len(data), headers)
                self.wfile.write(data[: len(data) // 2])
            case "garbage":
                self._answer(200, b"[1, {" + b"\xff" * 20, {})
            case "nested":
                self._answer(200, b"[" * 100_000, {})

    def _until_gone(self, ended: threading.Event) -> None:
        self.connection.settimeout(0.1)
        while not ended.is_set():
            try:
                if not self.connection.recv(1):
                    return
            except TimeoutError:
                continue

    def _drip(self, data: bytes, ended: threading.Event) -> None:
        for byte in data:
            self.wfile.write(bytes([byte]))
            if ended.wait(1.0):
                return

    def _head(self, status: int, length: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Type" not in headers:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def _answer(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        self._head(status, len(data), headers or {})
        self.wfile.write(data)


def crc(body: bytes) -> str:
    """Base64 of the big-endian CRC32C, as the API writes it."""
    return base64.b64encode(google_crc32c.value(body).to_bytes(4, "big")).decode()


def main() -> None:
    """One server as a process; ends with SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--bucket", default="fleet")
    options = parser.parse_args()
    with StrictGcs(options.bucket, options.port) as gcs:
        print(gcs.url, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
