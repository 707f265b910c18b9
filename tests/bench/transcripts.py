"""Reading transcripts: ours beside ccusage, a native program, on the same 200 MB of mixed kinds, in one run.

    python tests/bench/transcripts.py [--mb 200] [--rounds 5]

Histories of ``tests/bench/histories.py``. ``first`` begins without a store, ``later`` after nothing changed, ``grown`` after one session
grew by one answer. ``reading`` is the reader and the sums, in a process that has its libraries loaded and the store open (as the supervisor
has). ``process`` is the whole verb, Python's start included.

Of Qwen Code's model no price is known, while ccusage guesses one, so that sum is left out of the comparison. Exits with 1 when the first
read takes more than 1.5 times as long as ccusage, or a later one more than a tenth.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from console.settings.places import find_places  # noqa: E402
from console.sources.kinds import TRANSCRIPTS, VENDORS  # noqa: E402
from console.sources.spend.rates import RateBook  # noqa: E402
from console.sources.spend.reader import SpendReader  # noqa: E402
from console.sources.spend.store import SpendStore  # noqa: E402
from tests.bench.histories import write  # noqa: E402

FIRST, LATER = 1.5, 0.1
"""The aims, in times of ccusage."""


def timed(act: Callable[[], None]) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    act()
    return 1000 * (time.perf_counter() - began)


def main() -> int:
    """Print the table; 1 when an aim was missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    peer = next(iter((Path(sys.prefix) / "peers" / "node_modules").glob("@ccusage/ccusage-linux-*/bin/ccusage")), None)
    if peer is None:
        sys.exit("not available, because ccusage is not installed: packaging/test installs it")
    folder = Path(tempfile.mkdtemp(prefix="wf-bench-"))
    try:
        return measure(folder, peer, given.mb * 10**6, given.rounds)
    finally:
        shutil.rmtree(folder)


def measure(folder: Path, peer: Path, size: int, rounds: int) -> int:
    """Interleaved rounds; every reader finds the files in the page cache."""
    home = folder / "home"
    size = write(home, size)
    rates = RateBook(VENDORS)
    rates.version  # noqa: B018 - loads the table, as the supervisor does in a thread of its own
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)  # as the supervisor has it once it is ready
    environment = {"HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / ".claude"), "TZ": "UTC", "PATH": os.environ["PATH"]}
    said: dict[str, float] = {}

    def ccusage(*kind: str) -> float:
        done = subprocess.run([peer, *kind, "daily", "--json", "--offline"], env=environment, capture_output=True, check=True)
        totals = json.loads(done.stdout)["totals"] or {}
        return float(totals.get("totalCost", totals.get("costUSD", 0)))

    def reading(store: SpendStore) -> None:
        SpendReader(store, rates, TRANSCRIPTS, home).read()
        said["ours"] = sum(one.cost_usd for one in store.sums("day"))

    def process() -> None:
        find_places(str(folder / "state"), create=True)  # the verb asks an instance
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

    results: defaultdict[str, list[float]] = defaultdict(list)
    unpriced = ccusage("qwen")
    for number in range(rounds):
        store = SpendStore(folder / f"{number}.db")
        results["ccusage"].append(timed(lambda: said.update(ccusage=ccusage() - unpriced)))
        results["reading, first"].append(timed(partial(reading, store)))
        results["reading, later"].append(timed(partial(reading, store)))
        shutil.rmtree(folder / "state", ignore_errors=True)
        results["process, first"].append(timed(process))
        results["process, later"].append(timed(process))
        agree = abs(said["ccusage"] - said["ours"]) < 5e-7 and abs(said["ours"] - said["verb"]) < 5e-7
        grow()
        results["reading, grown"].append(timed(partial(reading, store)))
        store.close()
    times = {name: statistics.median(took) / statistics.median(results["ccusage"]) for name, took in results.items()}
    print(f"{size / 1e6:.0f} MB, {rounds} rounds, {os.cpu_count()} cores; the sums {'agree' if agree else 'DIFFER'}: {said}\n")
    print("| what | median ms | least ms | x ccusage |\n|---|--:|--:|--:|")
    for name, took in results.items():
        print(f"| {name} | {statistics.median(took):,.0f} | {min(took):,.0f} | {times[name]:.2f} |")
    later = max(times["reading, later"], times["reading, grown"])
    print(f"\nfirst {times['reading, first']:.2f} (aim {FIRST}), later {later:.3f} (aim {LATER})")
    return 0 if agree and times["reading, first"] <= FIRST and later <= LATER else 1


if __name__ == "__main__":
    sys.exit(main())
