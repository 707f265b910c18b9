"""How long a tool call waits for its hook: the whole command that a program runs, judged by a real supervisor.

``.venv/bin/python tests/bench/hook.py [--calls N] [--markdown]`` (root)

Three rows, call by call in turn in one run, each from the start of the shell to its end, inside an agent: *shell alone* runs nothing,
*interpreter alone* an empty program by the same interpreter, *hook* the installed command line with a call that the rules allow. What is
ours is the difference. Nothing else is subtracted; the load of the machine is printed beside, and *least* is what it takes when nobody
else has the processor. Exits 1 when the 95th percentile of the hook is over the limit, or its median over 2.5 times the interpreter's.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from console.sources.hook_settings import HookCommand  # noqa: E402 - needs the line above to find the project
from tests.fakes.instance import Instance  # noqa: E402

LIMIT_MS = 60.0
TIMES = 2.5
"""The aim: of the interpreter's own start."""
SHARES = (0.0, 0.5, 0.95, 0.99, 1.0)
PYTHON = "/usr/bin/python3"
AGENT = """
import json, subprocess
HOOK = {line!r}.replace('/HOOK', os.environ['WATCHFLOOR_TOYS'] + '/hook.py').replace('/SOCKET', os.environ['WATCHFLOOR_AGENT_SOCKET'])
CALL = {{'session_id': 's-1', 'hook_event_name': 'PreToolUse', 'tool_name': 'Bash', 'tool_input': {{'command': 'echo ok'}}}}
CALL = json.dumps(CALL).encode()
LINES = {{'shell alone': ':', 'interpreter alone': '{python} -I -S -c pass', 'hook': HOOK}}
took = {{name: [] for name in LINES}}
for number in range({calls} + 5):
    for name, line in LINES.items():
        begun = time.perf_counter()
        done = subprocess.run(['/bin/sh', '-c', line], input=CALL, capture_output=True)
        took[name].append((time.perf_counter() - begun) * 1000)
        assert done.returncode == 0, (name, done)
        if name == 'hook':
            time.sleep(0.05)  # a tree may make a hundred requests in a few seconds, and no more
print('TOOK', json.dumps({{name: found[5:] for name, found in took.items()}}), flush=True)
time.sleep(600)
"""


def measured(calls: int) -> dict[str, list[float]]:
    """Milliseconds of each call, by row; five rounds go before to warm up."""
    line = HookCommand(PYTHON, Path("/HOOK"), "claude-code", Path("/SOCKET"), 60).line()
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o711)
    try:
        with Instance(folder) as it:
            agent = it.python(AGENT.format(line=line, python=PYTHON, calls=calls), network_mode="NONE")
            said = it.says(agent, "TOOK ", 600).rpartition("TOOK ")[2]
            found: dict[str, list[float]] = json.loads(said.partition("\n")[0])
            return found
    finally:
        shutil.rmtree(folder)


def at(found: list[float], share: float) -> float:
    return sorted(found)[min(len(found) - 1, int(len(found) * share))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    before = os.getloadavg()[0]
    rows = measured(given.calls)
    bar = " | " if given.markdown else "  "
    print(f"{given.calls} calls of each in turn; {os.cpu_count()} cores, load {before:.1f} before and {os.getloadavg()[0]:.1f} after")
    print(bar.join(("ms".ljust(18), "least", "median", "p95", "p99", "most", f"over {LIMIT_MS:g} ms")))
    if given.markdown:
        print("|".join(["---"] * 7))
    for name, found in rows.items():
        figures = [f"{at(found, share):6.1f}" for share in SHARES]
        print(bar.join((name.ljust(18), *figures, str(sum(one > LIMIT_MS for one in found)))))
    own = [hook - bare for hook, bare in zip(rows["hook"], rows["interpreter alone"], strict=True)]
    print(bar.join(("hook less interpr.", *(f"{at(own, share):6.1f}" for share in SHARES), "")))
    times = at(rows["hook"], 0.5) / at(rows["interpreter alone"], 0.5)
    print(f"\nhook {times:.2f} times the interpreter alone (aim {TIMES})")
    return 0 if at(rows["hook"], 0.95) <= LIMIT_MS and times <= TIMES else 1


if __name__ == "__main__":
    sys.exit(main())
