"""How long a switch of the network takes, how many requests leak meanwhile, and how long a sandbox takes to start.

``DOCKER_HOST=unix:///... python tests/bench/switch.py [--rounds N] [--starts N] [--cold] [--markdown]`` (root; without an engine the
rows of containers are left out)

A real supervisor and guard. The agent asks a server all the time and, in another thread, says that it handles private data: *call* is the
time until it is answered, with everything in it (record on disk, freeze, network taken, portal opened or closed, thaw, verified). *leaked*
are requests that reached the server after the call was sent, most of them on their way already; *after* are those after it was answered,
which must be none. *portal closed* is the closing alone, with ten tunnels open, until the call returns.

A start is from the launch to the first line of an agent, a Python that says what time it is. *first* is the first launch of a supervisor,
which asks the package index whether the image is the newest; ``--cold`` builds the image from the package archive under another tag.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from docker import APIClient  # noqa: E402 - needs the line above to find the project

from console.api.messages import AllowlistEntryBody  # noqa: E402
from console.domain.errors import Conflict  # noqa: E402
from console.domain.network import Allowlist  # noqa: E402
from console.sandbox.containers import image  # noqa: E402
from tests.bench.egress import show  # noqa: E402
from tests.fakes.egress_stage import entry, stage  # noqa: E402
from tests.fakes.instance import Instance, until  # noqa: E402

SERVER = """
import socket, threading, time
times = []
def one(peer):
    with peer:
        while data := peer.recv(65536):
            at = time.monotonic_ns()
            body = b" ".join(b"%d" % t for t in times) if b"/times" in data else b"."
            if body == b".":
                times.append(at)
            peer.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
with socket.create_server(("", 80), backlog=256) as server:
    while True:
        threading.Thread(target=one, args=(server.accept()[0],), daemon=True).start()
"""
AGENT = """
import json, socket, threading
where, request, level = {where!r}, {request!r}, {level!r}
asked = []
def ask():
    while True:
        try:
            with socket.create_connection(where, timeout=5) as sock:
                while True:
                    sock.sendall(request)
                    if not sock.recv(65536).startswith(b"HTTP/1.1 200"):
                        break
                    asked.append(1)
        except OSError:
            time.sleep(0.001)
threading.Thread(target=ask, daemon=True).start()
while len(asked) < 200:
    time.sleep(0.01)
before = time.monotonic_ns()
mode = agent.private_data("bench", level)["network_mode"]
after = time.monotonic_ns()
time.sleep(0.5)
print("result", json.dumps([before, after, mode]), "end", flush=True)
"""
CLOCK = "import time; print('started', time.monotonic_ns(), flush=True)"


@contextmanager
def server(engine: APIClient) -> Iterator[str]:
    """A container on the engine's default bridge that notes when it is asked; its address."""
    config = engine.create_host_config(network_mode="bridge")
    name = f"bench-server-{secrets.token_hex(4)}"
    made = engine.create_container(image.ensure_image(engine), ["python3", "-I", "-c", SERVER], name=name, host_config=config)["Id"]
    try:
        engine.start(made)
        yield str(engine.inspect_container(made)["NetworkSettings"]["Networks"]["bridge"]["IPAddress"])
    finally:
        engine.remove_container(made, force=True, v=True)


def times(address: str) -> list[int]:
    """When the server was asked, monotonic nanoseconds."""
    import socket

    with socket.create_connection((address, 80), timeout=30) as sock:
        sock.sendall(b"GET /times HTTP/1.1\r\n\r\n")
        got = b""
        while b"\r\n\r\n" not in got or len(got.split(b"\r\n\r\n", 1)[1]) < int(got.split(b"Content-Length: ")[1].split(b"\r\n")[0]):
            got += sock.recv(1 << 20)
    return [int(t) for t in got.split(b"\r\n\r\n", 1)[1].split()]


def switches(it: Instance, address: str, rounds: int) -> list[list[str]]:
    """The rows of the first table."""
    it.api.add_entry(AllowlistEntryBody(host="site.test", port=80, private_networks=["172.16.0.0/12"], reason="bench", owner="bench"))
    direct = ((address, 80), b"GET / HTTP/1.1\r\nHost: site.test\r\n\r\n")
    proxied = (("127.0.0.1", 3128), b"GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n")
    cases = {
        "container FULL -> PROXIED": ("docker", "FULL", "CONFIDENTIAL", direct),
        "container FULL -> NONE": ("docker", "FULL", "SECRET", direct),
        "container PROXIED -> NONE": ("docker", "PROXIED", "SECRET", proxied),
        "bubblewrap PROXIED -> NONE": ("bubblewrap", "PROXIED", "SECRET", proxied),
    }
    found: dict[str, list[tuple[float, int, int]]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, (sandbox, mode, level, (where, request)) in cases.items():
            code = AGENT.format(where=where, request=request, level=level)
            agent = it.python(code, sandbox=sandbox, network_mode=mode, context_id=f"bench{secrets.token_hex(4)}")
            said = it.says(agent, " end", 120).split("result ")[1].split(" end")[0]
            before, after, _ = json.loads(said)
            asked = times(address)
            found[name].append(
                ((after - before) / 1e6, sum(before < t <= after for t in asked), sum(t > after for t in asked if t < after + 10**9))
            )
            print(f"  {name}: {found[name][-1]}", file=sys.stderr, flush=True)
            with suppress(Conflict):  # it has ended by itself
                it.api.kill(agent)
    return [_switch_row(name, seen) for name, seen in found.items()]


def _switch_row(name: str, seen: list[tuple[float, int, int]]) -> list[str]:
    calls, leaked, later = ([s[i] for s in seen] for i in range(3))
    medians = (
        f"{statistics.median(calls):.1f}",
        f"{max(calls):.1f}",
        f"{statistics.median(leaked):.0f}",
        f"{max(leaked)}",
        f"{max(later)}",
    )
    return [name, str(len(seen)), *medians]


def closings(rounds: int) -> list[str]:
    """The row of the portal's closing alone."""
    took = []
    with stage() as it:
        assert it.egress.apply(Allowlist(1, (entry("e1", "good.test"),))).ok
        for number in range(rounds):
            with it.box(f"b{number}") as box:
                for _ in range(10):
                    assert box.hold("good.test:443") == "streaming"
                began = time.monotonic()
                assert it.egress.detach(f"b{number}") == 10
                took.append((time.monotonic() - began) * 1e3)
                assert box.held() == [False] * 10
    return ["portal closed, 10 tunnels", str(rounds), f"{statistics.median(took):.1f}", f"{max(took):.1f}", "", "", "0"]


def starts(it: Instance, count: int, kinds: tuple[str, ...]) -> list[list[str]]:
    """The rows of the second table."""
    found: dict[str, list[float]] = {}
    for number in range(count):
        for kind in kinds:
            began = time.monotonic_ns()
            agent = it.launch("python3", "-I", "-c", CLOCK, sandbox=kind)
            said = it.says(agent, "started", 300)
            name = f"{kind}, first" if kind == "docker" and number == 0 else kind
            found.setdefault(name, []).append((int(said.split("started ")[1].split()[0]) - began) / 1e6)
    return [[name, str(len(t)), f"{statistics.median(t):,.0f}", f"{max(t):,.0f}"] for name, t in found.items()]


def cold(engine: APIClient) -> list[str]:
    """The row of an image that is not there yet; it is taken away again."""
    image.RECIPE = f"bench-{secrets.token_hex(4)}"
    began = time.monotonic()
    tag = image._find_or_build(engine)
    took = (time.monotonic() - began) * 1e3
    engine.remove_image(tag)
    return ["image built cold", "1", f"{took:,.0f}", f"{took:,.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    socket_path = os.environ.get("DOCKER_HOST", "").removeprefix("unix://")
    rows, begun = ([closings(options.rounds)] if options.rounds else []), []
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    folder.chmod(0o711)
    try:
        if socket_path:
            engine = APIClient(base_url=f"unix://{socket_path}", version="1.41", timeout=300)
            with server(engine) as address:
                (folder / "settings.json").write_text(json.dumps({"egress": {"hosts": {"site.test": [address]}}}))
                with Instance(folder, "--engine-socket", socket_path) as it:
                    until(lambda: it.api.allowlist().envoy == "healthy", 60, "Envoy is healthy")
                    begun = starts(it, options.starts, ("none", "bubblewrap", "docker")) if options.starts else []
                    rows += switches(it, address, options.rounds) if options.rounds else []
            begun += [cold(engine)] if options.cold else []
            engine.close()
        elif options.starts:
            with Instance(folder) as it:
                begun = starts(it, options.starts, ("none", "bubblewrap"))
    finally:
        shutil.rmtree(folder)
    if rows:
        show(["switch", "runs", "call median ms", "max ms", "leaked median", "leaked max", "after max"], rows, options.markdown, 1)
    if begun:
        show(["start", "runs", "median ms", "max ms"], begun, options.markdown, 1)
    print(f"load average at the end {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; compare within this run only.")


if __name__ == "__main__":
    main()
