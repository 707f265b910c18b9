"""Deterministic fleets for looking at and testing the console: the mock-ups' numbers, large fleets, hostile names."""

from __future__ import annotations

import random
from functools import cache

from console.api.agents.agent_types import SourcesFileView, SourcesView
from console.api.armed import PathView
from console.api.environment import EnvironmentView, VariableView
from console.api.messages import (
    AgentDetailView,
    AgentEventView,
    AgentView,
    EgressView,
    FleetView,
    HardeningView,
    HostView,
    KillSwitchView,
    ReceiptRow,
    SourceView,
    StatusView,
)
from console.domain.errors import code_words
from console.domain.kill import Outcome, Receipt, Step, StepName, StepStatus, Survivor, Target

NOW = 1_795_269_731.0
"""The fixtures' moment (seconds since the epoch)."""

HOSTILE_NAMES = (
    "<b>APPROVED</b>",
    '<img src="/etc/icon.png">',
    "x<br>y",
    "rm &amp; run &",
    "\u202egnitset\u202c",
    "a\u2066b\u2069c",
    "zero\u200bwidth\u200djoin",
    "\x1b[31mred\x1b[0m",
    "line\r\nbreak\x00nul",
    "pаypal",  # Cyrillic a
    "long-" + "n" * 195,
    "z" + "\u0301" * 180,
    "\u05e9\u05dc\u05d5\u05dd agent",
    "=HYPERLINK(1)",
    "file:///etc/passwd",
    "\u3164",
)

# name, parent, state, mode, budget share, cost, minutes of run time, last action
_TREES: tuple[tuple[str, str, str, str, float, float, float, str], ...] = (
    ("release-captain", "", "running", "PROXIED", 0.52, 31.42, 134, "plan · split into 4 tasks"),
    ("build-matrix", "release-captain", "running", "PROXIED", 0.41, 6.18, 58, "shell · cargo test --workspace"),
    ("linux-x64", "build-matrix", "running", "NONE", 0.48, 1.92, 31, "shell · ctest -j8"),
    ("linux-arm64", "build-matrix", "running", "NONE", 0.78, 3.14, 31, "shell · ctest -j8"),
    ("windows", "build-matrix", "waiting", "NONE", 0.11, 0.44, 6, "waits for lock build/win"),
    ("changelog-writer", "release-captain", "ended", "NONE", 0.44, 0.87, 11, "wrote CHANGELOG.md"),
    ("dependency-audit", "release-captain", "needs_ok", "PROXIED", 0.68, 4.06, 22, "asks: add host crates.io"),
    ("licence-scan", "dependency-audit", "running", "NONE", 0.30, 0.61, 9, "read 412 manifests"),
    ("cve-lookup", "dependency-audit", "needs_ok", "PROXIED", 0.69, 1.38, 14, "asks: GET osv.dev/v1/query"),
    ("osv-parser", "dependency-audit", "running", "NONE", 0.44, 0.22, 3, "python · parse.py"),
    ("support-triage", "", "running", "PROXIED", 0.74, 118.90, 1142, "loop · 212 tickets"),
    ("inbox-reader", "support-triage", "running", "PROXIED", 0.56, 22.35, 1141, "imap · fetch 50"),
    ("refund-drafter", "support-triage", "over_budget", "PROXIED", 0.98, 19.64, 277, "llm · draft 3 of 8"),
    ("policy-check", "refund-drafter", "running", "NONE", 0.37, 1.12, 41, "read policy/refunds.md"),
    ("sentiment", "support-triage", "running", "NONE", 0.39, 9.70, 1140, "batch 41"),
    ("infra-janitor", "", "running", "FULL", 0.51, 12.77, 228, "shell · terraform plan"),
    ("snapshot-pruner", "infra-janitor", "running", "PROXIED", 0.41, 2.05, 72, "aws · list 1 204"),
    ("cert-rotator", "infra-janitor", "waiting", "PROXIED", 0.13, 0.38, 12, "backoff 40 s"),
    ("data-sync", "", "running", "PROXIED", 0.55, 44.10, 440, "pipeline · stage 3/5"),
    ("schema-differ", "data-sync", "running", "NONE", 0.41, 3.30, 26, "python · diff.py"),
    ("backfill-worker", "data-sync", "running", "PROXIED", 0.81, 17.90, 355, "sql · chunk 118/400"),
)
_WHYS = (
    "its session holds CONFIDENTIAL data",
    "asked for at its launch",
    "CONFIDENTIAL data (customer letters) registered by operator:0: quarterly review",
    "its parent release-captain is in PROXIED",
    "operator:0: odd traffic to a paste host",
)
_LEVELS = ("contained", "managed", "contained", "adopted", "contained", "managed", "managed", "contained")


def burn(seed: int, rising: bool = False) -> list[float]:
    """24 slices of a believable burn."""
    return list(_burn(seed, rising))


@cache
def _burn(seed: int, rising: bool) -> tuple[float, ...]:
    chance = random.Random(seed)
    level, out = chance.random(), []
    for at in range(24):
        level = max(0.02, level + chance.uniform(-0.25, 0.25))
        out.append(round(0.02 + (at / 24) ** 2 * 0.2 if rising else level * 0.05, 4))
    return tuple(out)


def mockup_agents(now: float = NOW) -> list[AgentView]:
    """214 agents whose totals are the mock-ups'."""
    agents: list[AgentView] = []
    depth: dict[str, int] = {"": 0}
    for number, (name, parent, state, mode, share, cost, minutes, action) in enumerate(_TREES):
        depth[name] = depth[parent] + 1
        cap = round(cost / share, 2)
        agents.append(
            AgentView(
                id=name,
                parent_id=parent or None,
                depth=depth[name],
                name=name,
                session=f"ctx-{number:04x}",
                control_level=_LEVELS[number % len(_LEVELS)],
                sandbox="docker" if number % 3 == 0 else "bubblewrap",
                network_mode=mode,
                network_enforced=mode != "FULL",
                network_asked="PROXIED" if name == "infra-janitor" else mode,
                network_note="it shares the host's network: restarting it in a sandbox would be needed" if mode == "FULL" else "",
                network_why=_WHYS[number % len(_WHYS)],
                network_since=now - minutes * 40,
                sensitivity="CONFIDENTIAL" if mode == "NONE" else "INTERNAL",
                state=state,
                cost_usd=cost,
                usage={"cost_usd": cost, "tokens": cost * 41_000, "tool_calls": cost * 12, "iterations": cost * 3, "wall_s": minutes * 60},
                limits={"cost_usd": cap, "tokens": round(cap * 60_000), "tool_calls": round(cap * 30), "wall_s": minutes * 60 / share},
                budget_share=share,
                burn_usd_per_h=7.10 if name == "refund-drafter" else round(cost / max(minutes / 60, 1), 2),
                burn=burn(number, name == "refund-drafter"),
                pids=3 + number % 9,
                pid=4000 + number,
                started_at=now - minutes * 60,
                ended_at=now - 60 if state == "ended" else None,
                exit_code=0 if state == "ended" else None,
                last_action=action,
                last_action_at=now - number,
            )
        )
    agents.extend(_fillers(now, 214 - len(agents)))
    return agents


def _fillers(now: float, number: int) -> list[AgentView]:
    out = []
    for at in range(number):
        root = at % 8 == 0
        parent = None if root else f"eval-{at - at % 8:03d}"
        state = "waiting" if at % 11 == 3 and at < 190 else "needs_ok" if at in (20, 60, 100) else "over_budget" if at == 77 else "running"
        share = 0.95 if state == "over_budget" else 0.1 + (at * 37 % 60) / 100
        out.append(
            AgentView(
                id=f"eval-{at:03d}",
                parent_id=parent,
                depth=1 if root else 2,
                name=f"eval-shard-{at}",
                session=f"eval-{at:x}",
                control_level=_LEVELS[at % len(_LEVELS)] if at % 64 else "observed",
                network_mode="NONE",
                network_enforced=True,
                network_asked="NONE",
                network_why=_WHYS[at % len(_WHYS)],
                network_since=now - 1800 - at * 60,
                sandbox="bubblewrap" if at % 3 else "gvisor",
                state=state,
                cost_usd=0.4 + at % 7 / 10,
                usage={"cost_usd": 0.4 + at % 7 / 10},
                limits={"cost_usd": 2.0},
                budget_share=share,
                burn_usd_per_h=0.1,
                burn=burn(at + 100),
                pids=2,
                started_at=now - 3600 - at * 60,
                last_action=f"batch {at}",
                last_action_at=now - at,
            )
        )
    return out


def many_agents(number: int, now: float = NOW) -> list[AgentView]:
    """``number`` agents in trees of depth three."""
    out: list[AgentView] = []
    for at in range(number):
        parent, depth = (None, 1) if at % 12 == 0 else (f"a-{at - at % 12}", 2) if at % 12 < 5 else (f"a-{at - at % 12 + 1}", 3)
        out.append(
            AgentView(
                id=f"a-{at}",
                parent_id=parent,
                depth=depth,
                name=f"agent-{at * 7919 % number:05d}",
                session=f"ctx-{at // 3:04x}",
                control_level="managed",
                network_mode="NONE",
                network_enforced=True,
                network_asked="NONE",
                network_why=_WHYS[at % len(_WHYS)],
                network_since=now - at,
                sandbox="docker" if at % 2 else "none",
                state="running",
                cost_usd=at % 100 / 10,
                budget_share=at % 100 / 100,
                burn=burn(at % 50),
                started_at=now - at,
                last_action=f"step {at}",
            )
        )
    return out


def hostile_agents(now: float = NOW) -> list[AgentView]:
    """One agent for each hostile name; hostile in every text field an agent can reach."""
    return [
        AgentView(
            id=f"h-{at}",
            name=name,
            session=name,
            control_level="observed",
            state="running",
            state_reason=name,
            cost_usd=1e300 if at == 3 else 1.0,
            budget_share=1e12 if at == 4 else 0.2,
            last_action=name,
            cwd=name,
            network_note=name,
            network_asked="NONE",
            network_why=name,
            network_since=1e300 if at == 5 else now - 50,
            sandbox=name[:40],
            started_at=now - 100,
        )
        for at, name in enumerate(HOSTILE_NAMES)
    ]


def fleet(agents: list[AgentView], seq: int = 0) -> FleetView:
    """A fleet with the mock-ups' totals."""
    return FleetView(agents=agents, spend_today_usd=412.80, burn_usd_per_h=38.20, seq=seq)


def detail(agent: AgentView, now: float = NOW) -> AgentDetailView:
    """What the detail pane reads."""
    hosts = (("api.stripe.com:443", True, 1), ("mail.internal:993", True, 1), ("pastebin.com:443", False, 3))
    egress = [
        EgressView(at=now - 20, agent_id=agent.id, method="CONNECT", host=host, path="/", status=200 if ok else 403, allowed=ok)
        for host, ok, times in hosts
        for _ in range(times)
    ]
    events = (
        (13, "action", "llm · draft 3 of 8"),
        (31, "budget", "budget passed 95%"),
        (119, "egress", "blocked pastebin.com"),
        (248, "spawn", "spawned policy-check"),
        (384, "action", "llm · draft 2 of 8"),
    )
    chance = random.Random(agent.id)
    return AgentDetailView(
        agent=agent,
        argv=["python3", "agent.py", "--task", agent.name],
        events=[AgentEventView(at=now - ago, kind=kind, text=text) for ago, kind, text in events],
        egress=egress,
        cost_per_minute=[round(0.03 + (at / 60) ** 2 * 0.12 + chance.uniform(-0.01, 0.01), 4) for at in range(60)],
        can={"freeze": "", "thaw": "", "isolate": "", "kill": ""},
        environment=environment(agent),
        hardening=hardening(agent),
    )


_MEASURES = (
    ("not root", "uid 65534"), ("no other groups", "1 groups"), ("no capabilities", "effective 0"),
    ("no new privileges", "no_new_privs 1"), ("system call filter", "seccomp mode 2"), ("read-only root", "ro,relatime"),
    ("/tmp of its own, 100 MiB", "tmpfs of 100 MiB"), ("/tmp without programs", "rw,nosuid,nodev,noexec"),
    ("no engine socket", "none"), ("no devices", "none"), ("loopback only", "lo"), ("no core files", "0 bytes"),
    ("open files bounded", "1024"), ("processes bounded", "256 processes"), ("memory bounded", "2048 MiB"),
)  # fmt: skip


def hardening(agent: AgentView) -> list[HardeningView]:
    """A whole sandbox; with two measures this host cannot give where it is not a container."""
    out = []
    for name, words in _MEASURES:
        lacking = agent.sandbox != "docker" and name in ("/tmp without programs", "processes bounded")
        state, words = ("not_available", "bubblewrap mounts nothing noexec for an ordinary user") if lacking else ("given", words)
        line = f"{name}: not available, because {words}" if lacking else f"{name}: {words}"
        out.append(HardeningView.read({"name": name, "state": state, "words": words, "line": line}))
    return out


def environment(agent: AgentView) -> EnvironmentView:
    """Names of a type that has a secret, and one that was left out."""
    names = [("PATH", "default"), ("HOME", "default"), ("LANG", "default"), ("AGENT_AUTH_TOKEN", "watchfloor"), ("CRM_TOKEN", "type"),
             ("WATCHFLOOR_SOCKET", "watchfloor"), ("PIP_INDEX_URL", "type"), ("REGION", "launch")]  # fmt: skip
    variables = [VariableView.read({"name": n, "origin": o, "secret": n.endswith("TOKEN")}) for n, o in names]
    return EnvironmentView(agent_type="researcher", variables=variables, left_out=["AWS_SECRET_ACCESS_KEY: it is not marked as a secret"])


def type_sources() -> SourcesView:
    """One type that holds, one file that is broken."""
    good = SourcesFileView(
        agent_type="researcher",
        ok=True,
        enforced=["network: PROXIED, of the allowlist only pypi.org, files.pythonhosted.org", "PIP_INDEX_URL=https://pypi.org/simple",
                  "blocked packages at plain http registries: evil", "wall time 3600 s", "memory 2048 MiB"],
        not_enforced=["languages: python only: nothing here can see what an interpreter runs"],
    )  # fmt: skip
    bad = SourcesFileView(
        agent_type="writer", ok=False, error="sources/writer.json, runtime.max_memory_mb: -1 is less than 1.", remedy="Fix it."
    )
    return SourcesView(folder="/var/lib/watchfloor/sources", types=[good, bad])


def sources(now: float) -> list[SourceView]:
    """One of every state a source can be in."""
    adopt = "Nothing by itself: adopt a session first, or start it with watchfloor run."
    return [
        SourceView(
            source="claude_code", available=True, state="watching", looks_in=["~/.claude/projects"], looked_at=now - 0.4,
            watching="told of changes at once", reason="38 sessions on disk, 0 live",
            can_see="Sessions, sub-agents and what each answer cost.", can_stop=adopt,
        ),
        SourceView(
            source="codex", available=False, state="polling", looks_in=["~/.codex/sessions"], reason="~/.codex/sessions is not there",
            watching="looks about once a second", can_see="Sessions and tokens; a nested agent by its parent's link.", can_stop=adopt,
        ),
        SourceView(
            source="docker", available=True, state="polling", looks_in=["/run/docker.sock"], looked_at=now - 1.2,
            reason="engine 27.3", watching="looks about once a second", can_see="Containers with the label watchfloor.agent.",
            can_stop="Those that Watchfloor started, with proof; others by the engine's own commands.",
        ),
        SourceView(
            source="processes", available=True, state="silent", looks_in=["/proc"], reason="its look takes longer than 10 s",
            watching="looks about once a second", can_see="Programs it knows by name; not what they spend.", can_stop=adopt,
        ),
        SourceView(
            source="otlp", available=False, state="absent",
            reason="Not available, because it is switched off: the setting otlp.port names the loopback port it listens on.",
            can_see="Nothing yet.", can_stop="Nothing.",
        ),
    ]  # fmt: skip


def status(now: float = NOW) -> StatusView:
    """A healthy root instance."""
    return StatusView(
        instance="0badcafe",
        host="build-host",
        version="0.1",
        state_dir="/var/lib/watchfloor",
        mode="root",
        killed=False,
        pid=1,
        guard_pid=2,
        guard_ok=True,
        guard_detail="answers in 0.9 ms",
        sources=[
            *sources(now),
        ],
        engines={"docker": "", "gvisor": "not available, because runsc is not installed", "envoy": ""},
        audit_records=1_204_331,
        audit_whole=True,
        audit_checked_at=now - 12,
        operator="operator",
    )


def kill_switch(now: float = NOW) -> KillSwitchView:
    """Armed, with all four paths."""
    receipts = [
        ("k-0038", 18_131, "all", "drill", True, 214, 214, 0, 610.0, 0),
        ("k-0037", 73_390, "infra-janitor,snapshot-pruner", "operator", True, 9, 9, 0, 180.0, 0),
        ("k-0036", 140_064, "all", "operator", False, 213, 217, 3, 5000.0, 9),
        ("k-0035", 182_451, "refund-drafter", "budget", True, 2, 2, 0, 90.0, 0),
        ("k-0034", 277_331, "all", "auditor", True, 198, 199, 1, 580.0, 8),
        ("k-0033", 340_571, "data-sync", "operator", True, 11, 11, 0, 220.0, 7),
    ]
    return KillSwitchView(
        state="armed",
        killed=False,
        worst_s=2.4,
        passphrase="not_set",
        paths=[
            PathView(
                name="local",
                state="proven",
                detail="canary dead in 6 ms",
                checked_at=now - 40,
                worst_s=0.9,
                facts=[
                    ("How", "canary dead in 6 ms"),
                    ("By", "cgroup.kill + PID namespace"),
                    ("First SIGKILL", "1.9 ms after the kill"),
                    ("Needs", "nothing: no net, no disk"),
                ],
            ),
            PathView(
                name="engine",
                state="proven",
                detail="canary dead in 41 ms",
                checked_at=now - 52,
                worst_s=2.4,
                facts=[
                    ("How", "canary dead in 41 ms"),
                    ("By", "cgroup first, then the engine"),
                    ("Containers", "14, restart off in all"),
                    ("If engine hangs", "cgroup alone, 0.9 s"),
                ],
            ),
            PathView(
                name="remote",
                state="in_doubt",
                detail="silent for 34 s",
                checked_at=now - 34,
                worst_s=12.0,
                facts=[
                    ("Generation", "1763733721004412"),
                    ("Epoch", "8, signed by 2 of 2"),
                    ("Poller", "beat 34 s ago"),
                    ("Lease", "26 s of 60 s left"),
                ],
            ),
            PathView(name="secrets", state="not_configured", detail="no secrets are set up"),
        ],
        press={
            "contained": {"agents": 126, "processes": 812},
            "managed": {"agents": 71, "processes": 566},
            "adopted": {"agents": 17, "processes": 94},
            "observed": {"agents": 3, "processes": 14},
        },
        receipts=[
            ReceiptRow(
                kill_id=kill_id,
                pressed_at=now - ago,
                scope=scope,
                reason="sample",
                by=by,
                verified_zero=zero,
                complete=True,
                proven=proven,
                targets=targets,
                best_effort=best,
                ms_total=ms,
                exit_code=code,
                short=f"{proven} of {targets} confirmed dead" if code in (0, 7) else code_words(code),
                bad_steps=["rotate"] if code == 7 else [],
            )
            for kill_id, ago, scope, by, zero, proven, targets, best, ms, code in receipts
        ],
        hosts=[
            HostView(host="gpu-07", acknowledged=False, at=now - 180, detail="silent for 3 min"),
            HostView(
                host="build-host",
                acknowledged=True,
                verified_zero=True,
                exit_code=0,
                short="12 of 12 confirmed dead",
                survivors=0,
                at=now - 4,
            ),
        ],
    )


def receipt(agents: list[AgentView], *, proven: bool, now: float = NOW, kill_id: str = "k-0039", complete: bool = True) -> Receipt:
    """A press of everything; ``proven`` False leaves one agent in state D."""
    targets = []
    for number, agent in enumerate(agents):
        best = agent.control_level == "observed"
        bad = not proven and number == 7
        outcome = Outcome.BEST_EFFORT if best else Outcome.NOT_PROVEN if bad else Outcome.PROVEN_ZERO
        evidence = {"populated": 0, "inode": 88_000 + number} if outcome is Outcome.PROVEN_ZERO else {"pid": 48_213, "state": "D"}
        targets.append(Target(agent.id, agent.control_level, outcome, 5000.0 if bad else 90.0 + number * 2, evidence))
    ok = StepStatus.OK
    steps = (
        Step(StepName.LATCH, ok, 0.4, "on disk"),
        Step(StepName.REFUSE, ok, 0.5, "starts blocked"),
        Step(StepName.SIGNAL, ok, 64.0, "1,486 pids"),
        Step(
            StepName.ZERO,
            ok if proven else StepStatus.FAILED,
            610.0 if proven else 5000.0,
            "all populated 0" if proven else "1 not confirmed dead",
        ),
        Step(StepName.SECOND_LOOK, ok, 1120.0, "nothing new"),
        Step(StepName.ROTATE, ok, 4080.0, "5 of 5 refused"),
        Step(StepName.REMOTE, StepStatus.SKIPPED, None, "not configured"),
        Step(StepName.EVIDENCE, ok, 1940.0, "complete"),
    )
    left = () if proven else (Survivor(agents[7].id, 48_213, "D", "nfs_wait_bit_killable", "python3 agent.py", "uninterruptible sleep"),)
    return Receipt(
        kill_id=kill_id,
        instance_id="0badcafe",
        scope="all",
        reason="refund loop, wrong customers",
        by="operator",
        pressed_at=now - 124,
        verified_zero=proven,
        survivors=left,
        steps=steps,
        targets=tuple(targets),
        ms_total=4080.0,
        complete=complete,
    )
