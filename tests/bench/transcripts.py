"""Reading transcripts: ours beside ccusage, a native program, on the same 200 MB, in one run.

    python tests/bench/transcripts.py [--mb 200] [--rounds 5]

Answers of the real program (tests/data), with ids, times and texts of their own, among tool results of up to 40 kB. ``first`` begins
without a store, ``later`` after nothing changed, ``grown`` after one session grew by one answer. ``reading`` is the reader in a process
that has its libraries loaded (as the supervisor has); ``process`` is the whole verb, Python's start included.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from console.sources.kinds import TRANSCRIPTS, VENDORS  # noqa: E402
from console.sources.spend.rates import RateBook  # noqa: E402
from console.sources.spend.reader import SpendReader  # noqa: E402
from console.sources.spend.store import SpendStore  # noqa: E402

REAL = ROOT / "tests" / "data" / "claude-code" / "projects-tree" / "-home-dev-proj"
WORDS = ("the", "build", "fails", "in", "module", "seven", "because", "of", "a", "missing", "import", "def", "return", "self", "None")


def text(chance: random.Random, size: int) -> str:
    """About ``size`` bytes of prose and code, with what JSON must escape."""
    return "\n".join(" ".join(chance.choices(WORDS, k=12)) + ' "quoted\\path"' for _ in range(max(1, size // 90)))


def sessions(home: Path, megabytes: int) -> int:
    """Writes sessions of about 1 MB each until there is enough; bytes in all."""
    chance = random.Random(7)
    lines = [json.loads(line) for line in next(REAL.glob("*.jsonl")).read_text().splitlines()]
    total, number = 0, 0
    while total < megabytes * 10**6:
        session = f"{number:08x}-0000-4000-8000-000000000000"
        folder = home / ".claude" / "projects" / f"-home-dev-proj{number % 20}"
        folder.mkdir(parents=True, exist_ok=True)
        written = 0
        with (folder / f"{session}.jsonl").open("w") as file:
            turn = 0
            while written < 10**6:
                turn += 1
                for record in lines:
                    if record["type"] == "cost-state":
                        continue
                    record = json.loads(json.dumps(record)) | {"sessionId": session}
                    message = record.get("message", {})
                    if record["type"] == "assistant":
                        message["id"] = f"{message['id']}-{number}-{turn}"
                        message["usage"]["output_tokens"] = chance.randrange(20, 4000)
                        day = 1 + (number % 20)
                        record["timestamp"] = f"2026-10-{day:02d}T20:28:05.833Z"
                    elif record["type"] == "user":
                        message["content"] = [{"type": "tool_result", "content": text(chance, chance.choice((200, 2000, 8000, 40_000)))}]
                    written += file.write(json.dumps(record, separators=(",", ":")) + "\n")
        total += written
        number += 1
    return total


def timed(act: Callable[[], None]) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    act()
    return 1000 * (time.perf_counter() - began)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    peer = next(iter((Path(sys.prefix) / "peers" / "node_modules").glob("@ccusage/ccusage-linux-*/bin/ccusage")), None)
    if peer is None:
        sys.exit("not available, because ccusage is not installed: packaging/test installs it")
    folder = Path(tempfile.mkdtemp(prefix="wf-bench-"))
    try:
        measure(folder, peer, given.mb, given.rounds)
    finally:
        shutil.rmtree(folder)


def measure(folder: Path, peer: Path, megabytes: int, rounds: int) -> None:
    """Interleaved rounds; every reader finds the files in the page cache."""
    home = folder / "home"
    size = sessions(home, megabytes)
    rates = RateBook(VENDORS)
    rates.version  # noqa: B018 - loads the table, as the supervisor does in a thread of its own
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)  # as the supervisor has it once it is ready
    environment = {"HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / ".claude"), "TZ": "UTC", "PATH": os.environ["PATH"]}
    said: dict[str, float] = {}

    def ccusage() -> None:
        done = subprocess.run([peer, "claude", "daily", "--json", "--offline"], env=environment, capture_output=True, check=True)
        said["ccusage"] = json.loads(done.stdout)["totals"]["totalCost"]

    def reading(name: str) -> None:
        store = SpendStore(folder / name)
        SpendReader(store, rates, TRANSCRIPTS, home).read()
        said["ours"] = sum(one.cost_usd for one in store.sums("day"))
        store.close()

    def process() -> None:
        command = [sys.executable, "-m", "console", "cost", "--state-dir", str(folder / "state"), "--home", str(home), "--json"]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True)
        said["verb"] = json.loads(done.stdout)["total_cost_usd"]

    def grow() -> None:
        file = next(iter(sorted((home / ".claude" / "projects").rglob("*.jsonl"))))
        line = next(one for one in file.read_text().splitlines() if '"assistant"' in one)
        record = json.loads(line)
        record["message"]["id"] = f"grown-{time.time_ns()}"
        with file.open("a") as out:
            out.write(json.dumps(record, separators=(",", ":")) + "\n")

    results: dict[str, list[float]] = {}
    ccusage()  # once for the page cache
    for number in range(rounds):
        results.setdefault("ccusage", []).append(timed(ccusage))
        results.setdefault("reading, first", []).append(timed(lambda n=number: reading(f"{n}.db")))  # type: ignore[misc]
        results.setdefault("reading, later", []).append(timed(lambda n=number: reading(f"{n}.db")))  # type: ignore[misc]
        shutil.rmtree(folder / "state", ignore_errors=True)
        results.setdefault("process, first", []).append(timed(process))
        results.setdefault("process, later", []).append(timed(process))
        agree = abs(said["ccusage"] - said["ours"]) < 5e-7 and abs(said["ours"] - said["verb"]) < 5e-7
        grow()
        results.setdefault("reading, grown", []).append(timed(lambda n=number: reading(f"{n}.db")))  # type: ignore[misc]
    base = statistics.median(results["ccusage"])
    print(f"{size / 1e6:.0f} MB, {rounds} rounds, {os.cpu_count()} cores; the sums {'agree' if agree else 'DIFFER'}: {said}\n")
    print("| what | median ms | worst ms | x ccusage |\n|---|--:|--:|--:|")
    for name, times in results.items():
        middle = statistics.median(times)
        print(f"| {name} | {middle:,.0f} | {max(times):,.0f} | {middle / base:.2f} |")


if __name__ == "__main__":
    main()
