"""How long one decision takes, beside cedarpy, in one run.

    python tests/bench/policy.py [--rules 500] [--decisions 5000] [--rounds 3] [--markdown]

Both hold as many rules: ours is ``settings.json`` (2 of 5 shell, 2 of 5 file, the rest network), Cedar's one policy per rule with the same
meaning as far as it has words for it (a program's name, a path's ``like``, a host), parsed once. Ours does more in a decision: it reads the
shell text twice, asks the real disk for every program and file, and judges each argument; Cedar is given the answer to all of that as plain
strings. ``supervisor`` is a whole decision of a supervisor: its five files looked at, rules, scopes, a permission matrix, its type's
``sources.json``, its own dangers, sequences; nothing is recorded yet. ``matrix`` the rules with that matrix; ``judge`` the rules and
dangers alone; ``rules only`` the file rules on paths that were looked up before, which is what Cedar is asked. A shell text is never the
same twice. "own" is this thread's time on a processor.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import cedarpy  # noqa: E402 - needs the line above to find the project

from console.api.policy import policy_data  # noqa: E402
from console.domain.calls.permission import PermissionRequest  # noqa: E402
from console.ledger.store import Ledger  # noqa: E402
from console.policy.files.disk import Disk  # noqa: E402
from console.policy.files.paths import TEXT_MAX, Facts, FileRules  # noqa: E402
from console.policy.files.walk import Listing  # noqa: E402
from console.policy.matrix import read_matrix  # noqa: E402
from console.policy.scopes import Scope  # noqa: E402
from console.services.launch.environments import Given  # noqa: E402
from console.services.launch.environments import _key as environment_key  # noqa: E402
from console.services.launch.environments import _text as environment_text  # noqa: E402
from console.services.launch.type_sources import TypeSources  # noqa: E402
from console.services.policy.dangerous_operations import OwnList  # noqa: E402
from console.services.policy.service import PolicyDesk  # noqa: E402
from console.settings.places import find_places  # noqa: E402
from tests.fakes.playbook import Playbook  # noqa: E402
from tests.fakes.policy_world import context, rules, told  # noqa: E402

Row = tuple[str, float, float, float, float]
CALLS = (
    ("shell", "grep -r error{} logs/"),
    ("shell", "cat a.txt | sort -u | head -{}"),
    ("shell", "git log --oneline -{}"),
    ("shell", "cat /etc/shadow -- {}"),
    ("shell", "sed -n 1,{}p a.txt > b.txt"),
    ("read_file", "a.txt"),
    ("write_file", "logs/new.log"),
    ("http_request", "https://host7.example/x"),
)
ROWS = {
    "tools": {
        "shell": {},
        "read_file": {"paths": ["${WORKSPACE}/**"], "max_size": "10MB"},
        "write_file": {"paths": ["${WORKSPACE}/**"], "max_size": "10MB"},
        "http_request": {"methods": ["GET", "POST"], "domains": [f"host{at}.example" for at in range(50)]},
        "send_email": "DENIED",
        "query_database": {"databases": ["reports"], "write": False},
    }
}
SOURCES = {
    "agent_type": "coder",
    "package_managers": {"pip": {"enabled": True, "registries": [{"name": "ours", "url": "https://packages.example.org/simple"}]}},
    "web_access": {"enabled": True, "allowed_domains": [f"host{at}.example" for at in range(50)]},
    "git": {"enabled": True, "allowed_remotes": ["https://code.example/*"]},
}


def call(at: int) -> tuple[str, str]:
    tool, argument = CALLS[at % len(CALLS)]
    return tool, argument.format(at)


def lists(count: int) -> dict[str, list[str]]:
    """``count`` rules; the programs that are called are among the last."""
    made: dict[str, list[str]] = {"allow": [], "ask": [], "deny": []}
    for at in range(count - 12):
        kind = ("allow", "deny", "allow", "ask", "deny")[at % 5]
        rule = (
            f"shell(tool{at}:*)",
            f"file(read:/srv/area{at}/**)",
            f"shell(git sub{at}:*)",
            f"file(write:/srv/area{at}/*.log)",
            f"network(outbound:host{at}.example)",
        )
        made[kind].append(rule[(at // 5) % 5])
    made["allow"] += [f"shell({name}:*)" for name in ("grep", "cat", "sort", "head", "sed", "git log")]
    made["allow"] += ["file(read:${WORKSPACE}/**)", "file(write:${WORKSPACE}/**)", "network(outbound:*.example)"]
    made["deny"] += ["shell(curl:*)", "file(read:/etc/shadow)", "network(outbound:evil.example)"]
    return made


def as_cedar(made: dict[str, list[str]], workspace: str) -> str:
    """The same rules as Cedar policies (there is no ask: it is left out)."""
    words = []
    for kind, effect in (("allow", "permit"), ("deny", "forbid")):
        for rule in made[kind]:
            family, inside = rule[:-1].split("(", 1)
            inside = inside.removesuffix(":*").replace("${WORKSPACE}", workspace).replace("**", "*")
            field, value = {
                "shell": ("program", inside),
                "file": ("path", inside.partition(":")[2]),
                "network": ("host", inside.partition(":")[2]),
            }[family]
            action = family if family != "file" else inside.partition(":")[0]
            words.append(f'{effect}(principal, action == Action::"{action}", resource) when {{ context.{field} like "{value}" }};')
    return "\n".join(words)


def supervisor(count: int, folder: Path) -> Callable[[str, str], object]:
    """A whole decision of a supervisor, by rules that lie in its state directory."""
    places = find_places(str(folder / "state"), create=True)
    workspace = places.workspaces_dir / "c"
    (workspace / "logs").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "logs/x.log"):
        (workspace / name).write_text("x\n")
    places.policy_file.write_text(json.dumps({"permissions": lists(count)}))
    (places.state_dir / "matrix.json").write_text(json.dumps(ROWS))
    (places.state_dir / "dangers.json").write_text(json.dumps({"dangers": [{"name": "own", "why": "why", "program": "deploy"}]}))
    (places.state_dir / "sources").mkdir()
    (places.state_dir / "sources" / "coder.json").write_text(json.dumps(SOURCES))
    ledger = Ledger(places.ledger_db)
    ledger.kv_set(environment_key("a"), environment_text(Given("coder", (), ())))
    time.sleep(4)  # files that changed just now are read each time
    options: Any = SimpleNamespace(agents=SimpleNamespace(own_sandbox=()))
    notice: Any = print
    types = TypeSources(ledger, places, options)
    desk = PolicyDesk(places, print, policy_data.dangers, lambda _agent_id: None, types.declared_of, types.type_of)
    desk.dangers = OwnList(places, notice).current
    agent = replace(Playbook().run("a", context_id="c").agent("a"), scopes=tuple(str(scope) for scope in Scope))
    bounds, declared = desk.matrix.of(agent, str(workspace)), types.declared_of(agent)
    assert bounds and declared and declared.git_enabled and desk.sequences.patterns(), "nothing is left out"
    assert any(danger.name == "own" for danger in desk.dangers())
    assert desk.judge(agent, PermissionRequest(*call(0))).decision.verdict == "allow"
    return lambda tool, argument: desk.judge(agent, PermissionRequest(tool, argument))


def timed(decide: Callable[[int], object], count: int) -> list[tuple[float, float]]:
    """Milliseconds of each of ``count`` decisions: by the clock, and of this thread's own (a busy machine takes turns)."""
    found = []
    for at in range(count):
        begun, own = time.perf_counter_ns(), time.thread_time_ns()
        decide(at)
        own, done = time.thread_time_ns() - own, time.perf_counter_ns() - begun
        found.append((done / 1e6, own / 1e6))
    return found


def line(name: str, found: list[tuple[float, float]]) -> Row:
    clock, own = sorted(one for one, _ in found), sorted(one for _, one in found)
    return name, statistics.median(clock), clock[int(len(clock) * 0.99)], statistics.median(own), own[int(len(own) * 0.99)]


class Known:
    """Facts that were looked up before."""

    def look(self, path: str) -> Facts:
        return Facts(path)

    def stamp(self, folder: str) -> tuple[int, ...] | None:
        return None

    def listing(self, folder: str) -> Listing:
        return Listing()

    def text(self, path: str, most: int = TEXT_MAX) -> str | None:
        return None


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--rules", type=int, default=500)
    options.add_argument("--decisions", type=int, default=5000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--markdown", action="store_true")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "logs").mkdir()
        for name in ("a.txt", "b.txt", "logs/x.log"):
            (Path(folder) / name).write_text("x\n")
        show(given, measured(given, folder))


def measured(given: argparse.Namespace, folder: str) -> list[Row]:
    made = lists(given.rules)
    settings = rules(**{kind: [rule.replace("${WORKSPACE}", folder) for rule in found] for kind, found in made.items()})
    judged = context(settings, Disk())
    supervised = supervisor(given.rules, Path(folder))
    bounded = replace(judged, matrix=read_matrix(ROWS, folder))
    only = FileRules(settings)
    parsed = cedarpy.PolicySet.from_str(as_cedar(made, folder))
    asked = {
        "principal": 'Agent::"a"',
        "action": 'Action::"read"',
        "resource": 'File::"f"',
        "context": {"path": f"{folder}/a.txt", "program": "", "host": ""},
    }
    assert cedarpy.is_authorized(asked, parsed, []).allowed
    decisions = {
        "watchfloor, supervisor": lambda at: supervised(*call(at)),
        "watchfloor, matrix": lambda at: told(bounded, *call(at)),
        "watchfloor, judge": lambda at: told(judged, *call(at)),
        "watchfloor, rules only": lambda at: only.judge("read", f"{folder}/a.txt", folder, Known()),
        "cedarpy": lambda at: cedarpy.is_authorized(asked, parsed, []),
    }
    gc.collect()
    gc.freeze()
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in decisions}
    for (name, decide), _ in itertools.product(decisions.items(), range(given.rounds)):
        timed(decide, 50)
        found[name] += timed(decide, given.decisions if name != "cedarpy" else max(200, given.decisions // 10))
    return [line(name, times) for name, times in found.items()]


def show(given: argparse.Namespace, rows: list[Row]) -> None:
    print(f"{given.rules} rules, {given.decisions} decisions, {given.rounds} rounds; milliseconds; load {os.getloadavg()[0]:.1f}")
    bar = "| " if given.markdown else ""
    print(f"{bar}{'':24}{'p50':>10}{'p99':>10}{'own p50':>10}{'own p99':>10}")
    for name, *numbers in rows:
        print(f"{bar}{name:24}" + "".join(f"{number:10.3f}" for number in numbers))
    *_, judged, only, cedar = rows
    print(f"own p50, cedarpy / judge: {cedar[3] / judged[3]:.1f}; cedarpy / rules only: {cedar[3] / only[3]:.1f}")


if __name__ == "__main__":
    main()
