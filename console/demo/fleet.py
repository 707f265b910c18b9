"""What runs in the demo: three trees of toy agents, one boxed agent per network mode, one that asks, and the allowlist they meet."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any, Literal

import console
from console.api.messages import AllowlistEntryBody, LaunchBody
from console.demo import web as demo_web

MAX_CHILDREN = 6
SPENDER, ESCAPER, WRITER, REACHER, TOO_DEEP = "deep-reader", "stray", "report-writer", "docs-reader", "fact-checker"
ROOTS = ("market-research", "support-desk", "records-audit")
ASKER = "release-bot"
BOXES = ("box-full", "box-proxied", "box-none")
SPENDER_CAP_USD = 0.40
URLS = tuple(f"http://{host}/guide" for host in (demo_web.ALLOWED, demo_web.FORBIDDEN))
DIRECT = f"{demo_web.HOSTS[demo_web.FORBIDDEN]}:{demo_web.PORT}"


@dataclass
class Toy:
    """One toy agent to start, and what it starts in its turn."""

    name: str
    toy: str
    args: tuple[str, ...] = ()
    limits: dict[str, float] = field(default_factory=dict)
    children: list[Toy] = field(default_factory=list)

    def told(self, seconds: float) -> dict[str, Any]:
        """As the planner toy takes it with --spawn."""
        return {"toy": self.toy, "args": self.words(seconds), "name": self.name, "limits": self.limits}

    def words(self, seconds: float) -> list[str]:
        """Its options, its children's inside."""
        spawn = [word for child in self.children for word in ("--spawn", json.dumps(child.told(seconds)))]
        return ["--seconds", f"{seconds:g}", *self.args, *spawn]

    def argv(self, toys: str, seconds: float) -> list[str]:
        """Its command line; ``toys`` is the folder that holds the client, as the agent sees it."""
        return ["python3", f"{toys}/toys/{self.toy}.py", *self.words(seconds)]

    def count(self) -> int:
        """Itself and all below."""
        return 1 + sum(child.count() for child in self.children)


Level = Literal["PUBLIC", "CONFIDENTIAL", "SECRET"]


def trees(agents: int) -> list[tuple[Toy, Level]]:
    """The three trees, depth 3, filled up with workers to about ``agents`` in all (boxed ones included); more trees when they are full."""
    reach = tuple(word for url in URLS for word in ("--url", url))
    probe = (*reach, "--direct", DIRECT)
    research = Toy(
        ROOTS[0],
        "planner",
        children=[
            Toy(
                "outline",
                "planner",
                children=[
                    Toy(WRITER, "writer"),
                    Toy(SPENDER, "spender", limits={"cost_usd": SPENDER_CAP_USD}),
                    # Depth is fixed at birth: this one is at depth 3, and its child would be at 4.
                    Toy(TOO_DEEP, "planner", children=[Toy("never-born", "planner")]),
                ],
            ),
            Toy(ESCAPER, "escaper", ("--runaways", "2")),
        ],
    )
    support = Toy(ROOTS[1], "planner", children=[Toy("ticket-reader", "planner", children=[Toy(REACHER, "reacher", probe)])])
    audit = Toy(ROOTS[2], "planner", children=[Toy("sampler", "planner", children=[Toy("prober", "reacher", probe)])])
    found: list[tuple[Toy, Level]] = [(research, "PUBLIC"), (support, "CONFIDENTIAL"), (audit, "SECRET")]
    missing = agents - len(BOXES) - sum(tree.count() for tree, _ in found) + 1  # never-born is not one of them
    missing -= _fill([tree for tree, _ in found], missing, "worker", MAX_CHILDREN - 1)
    while missing > 0:
        tree = Toy(f"extra-{len(found) - 2}", "planner", ("--step", "2"))
        missing -= 1 + _fill([tree], missing - 1, f"{tree.name}-worker", MAX_CHILDREN)
        found.append((tree, "PUBLIC"))
    return found


def _fill(roots: list[Toy], missing: int, name: str, room: int) -> int:
    """Workers below the roots (``room`` children each: a box may be one too) and below those workers; how many."""
    layer, number = roots, 0
    for most in (room, MAX_CHILDREN):
        born: list[Toy] = []
        for parent in cycle(layer):
            if number >= missing or all(len(p.children) >= most for p in layer):
                break
            if len(parent.children) < most:
                number += 1
                worker = Toy(f"{name}-{number}", "planner", ("--step", "2"))
                parent.children.append(worker)
                born.append(worker)
        layer = born
        if not layer:
            break
    return number


def copy_toys(folder: Path) -> Path:
    """The toys in ``folder``, where agents under another user id can read them, wherever Watchfloor is installed."""
    shutil.copytree(Path(console.__file__).parent / "integrations", folder, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return folder


def root_launch(tree: Toy, sensitivity: Level, toys: Path, seconds: float) -> LaunchBody:
    """A tree's root, with a budget for the whole tree."""
    return LaunchBody(
        argv=tree.argv(str(toys), seconds),
        name=tree.name,
        sensitivity=sensitivity,
        tree_limits={"cost_usd": 50.0, "tokens": 50_000_000},
    )


def asker_launch(toys: Path) -> LaunchBody:
    """An agent that asks for approval, so that a person can answer; soon after each answer it asks again."""
    loop = 'while :; do python3 -I -S "$1" shell "git push origin release"; sleep 20; done'
    return LaunchBody(argv=["sh", "-c", loop, ASKER, str(toys / "ask.py")], name=ASKER, limits={"wall_s": 86_400.0})


def box_launch(
    name: str, mode: Literal["FULL", "PROXIED", "NONE"], sandbox: Literal["docker", "bubblewrap"], parent_id: str, seconds: float
) -> LaunchBody:
    """One agent in a sandbox of its own, below a root; it tries the same places as the others."""
    args = () if mode == "FULL" else tuple(word for url in URLS for word in ("--url", url)) + ("--direct", DIRECT)
    toy = Toy(name, "planner" if mode == "FULL" else "reacher", args)
    return LaunchBody(
        # Only the sandbox knows where it shows the toys.
        argv=["sh", "-c", f'exec python3 "$WATCHFLOOR_TOYS/toys/{toy.toy}.py" "$@"', name, *toy.words(seconds)],
        name=name,
        parent_id=parent_id,
        sandbox=sandbox,
        network_mode=mode,
        limits={"wall_s": 86_400.0},
    )


def other_host_launch(toys: Path, seconds: float) -> LaunchBody:
    """The one agent of the other host."""
    return LaunchBody(argv=Toy("night-shift", "planner").argv(str(toys), seconds), name="night-shift")


def allowlist_entry() -> AllowlistEntryBody:
    """The one destination that PROXIED agents may reach; its stand-in lives on a private range that the entry names."""
    return AllowlistEntryBody(
        host=demo_web.ALLOWED,
        port=demo_web.PORT,
        methods=["GET", "HEAD"],
        reason="The support desk reads the product's documentation.",
        owner="demo",
        may_receive="CONFIDENTIAL",
        private_networks=[demo_web.NETWORK],
    )
