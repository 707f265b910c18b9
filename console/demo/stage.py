"""The demo's stage: two hosts, their stand-ins and their fleets; set up, looked at, pressed, and taken down."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeVar

from console.api.messages import EgressView, FleetView, LaunchBody
from console.api.records import AuditVerdict
from console.cli.terminal import out
from console.demo import checks as demo_checks
from console.demo import cleanup
from console.demo import fleet as demo_fleet
from console.demo import web as demo_web
from console.demo.checks import AfterPress, BeforePress, Promise, Verdict
from console.demo.hosts import Host, engine_socket_here, host_environment, make_host, make_keys
from console.demo.standins import BUCKET_WORDS, WEB_WORDS, StandIns
from console.domain.errors import ConsoleError
from console.domain.kill import Receipt, Target, receipt_from_json
from console.domain.words import counted

FIRST = "a"
"""State directory of the first host, in the demo's folder."""
ENVOY_S = 60.0
OTHER_S = 60.0
"""How long the other host may take: its poll, its kill, its receipt."""
_MODES: dict[str, Literal["FULL", "PROXIED", "NONE"]] = {"box-full": "FULL", "box-proxied": "PROXIED", "box-none": "NONE"}
T = TypeVar("T")


class Stage:
    """Everything the demo started; ``end`` may be called at any point and ends what there is."""

    first: Host

    def __init__(self, folder: Path, agents: int, lasts_s: float, tell: Callable[[str], None] = out.note) -> None:
        """``tell`` hears each step of the preparation."""
        self._folder, self._agents, self._lasts_s, self._tell = folder, agents, lasts_s, tell
        self._engine = engine_socket_here()
        self._stand_ins = StandIns()
        self._hosts: list[Host] = []
        self._no_network = ""
        self._boxes: dict[str, str] = {}
        self._watched: dict[int, int] = {}
        self.other: Host | None = None

    # --- set up

    def set_up(self) -> None:
        """Stand-ins, hosts, keys, allowlist, fleets. Raises ConsoleError when the first host cannot run."""
        self._stand_ins.start(self._folder)
        self._no_network = self._stand_ins.no_web
        self._start_hosts()
        toys = demo_fleet.copy_toys(self._folder / "toys")
        self._allow()
        with self.first.client as client:
            roots = []
            for tree, sensitivity in demo_fleet.trees(self._agents):
                roots.append(client.launch(demo_fleet.root_launch(tree, sensitivity, toys, self._lasts_s)).id)
                self._tell(f"launched {tree.name} ({sensitivity}): {counted(tree.count(), 'agent')}")
            self._launch_boxes(roots)
            client.launch(demo_fleet.asker_launch(toys))
            self._tell(f"launched {demo_fleet.ASKER}: it asks for approval (page Approvals)")
        if self.other is not None:
            with self.other.client as client:
                client.launch(demo_fleet.other_host_launch(toys, self._lasts_s))

    def _start_hosts(self) -> None:
        bucket, web = self._stand_ins.bucket, self._stand_ins.web
        endpoint, name = (bucket.endpoint, bucket.name) if bucket else ("", "")
        words = ([BUCKET_WORDS] if bucket else []) + ([WEB_WORDS] if web else [])
        netns, hosts = (web.netns, demo_web.HOSTS) if web else ("", {})
        self.first = make_host(
            "demo-a", self._folder / FIRST, self._engine, endpoint=endpoint, bucket=name, netns=netns, hosts=hosts, stand_ins=words
        )
        self._hosts.append(self.first)
        if bucket is not None:
            words = [BUCKET_WORDS]
            self.other = make_host("demo-b", self._folder / "b", self._engine, endpoint=endpoint, bucket=name, hosts={}, stand_ins=words)
            self._hosts.append(self.other)
            make_keys(self.first, [self.other])
        for host in self._hosts:
            host.start()
        for host in self._hosts:
            host.wait_ready()
            self._tell(f"supervisor and guard of {host.name} run")
            if bucket is not None:  # nothing starts before the first good signed read of the kill file
                host.wait_armed(30)

    def _allow(self) -> None:
        """The allowlist's one entry, taken by the real Envoy; or why PROXIED reaches nothing here."""
        envoy = self.first.status().engines.get("envoy", "")
        with self.first.client as client:
            if envoy:
                self._no_network = self._no_network or f"Envoy is {envoy}"
            elif not _wait(lambda: client.allowlist().envoy == "healthy", ENVOY_S):
                self._no_network = self._no_network or f"Envoy is not healthy: {client.allowlist().envoy_detail}"
            if self._no_network:
                self._tell(self._no_network)
                return
            self._tell(client.add_entry(demo_fleet.allowlist_entry()).words)

    def _launch_boxes(self, roots: list[str]) -> None:
        engines = self.first.status().engines
        sandbox: Literal["docker", "bubblewrap"] = "docker" if not engines.get("docker", "missing") else "bubblewrap"
        if sandbox == "bubblewrap":
            self._tell(f"docker is {engines.get('docker', 'not there')}; bubblewrap is used instead")
        with self.first.client as client:
            for (name, mode), root in zip(_MODES.items(), roots, strict=True):
                try:
                    body = demo_fleet.box_launch(name, mode, sandbox, root, self._lasts_s)
                    self._boxes[name] = client.launch(body).id
                    self._tell(f"launched {name} in {sandbox}, network {mode}")
                except ConsoleError as error:
                    self._boxes[name] = f"{sandbox}: {error}"
                    self._tell(f"{name} was not started: {error}")

    # --- look and press

    def fleet(self) -> FleetView:
        """The first host's agents."""
        with self.first.client as client:
            return client.fleet()

    def before_press(self, wait_s: float) -> list[Promise]:
        """Judged again and again until all held or the time is over: a slow machine is no broken promise."""
        deadline = time.monotonic() + wait_s
        while True:
            found = demo_checks.before_press(self._seen())
            if all(p.verdict is not Verdict.NOT_HELD for p in found) or time.monotonic() > deadline:
                return found
            time.sleep(1)

    def _seen(self) -> BeforePress:
        with self.first.client as client:
            refused = client.audit(q="launch.refused").rows
            egress: list[EgressView] = client.egress(limit=1000).egress
            return BeforePress(
                fleet=client.fleet(),
                egress=egress,
                arrived=self._stand_ins.web.arrived() if self._stand_ins.web else None,
                no_network=self._no_network,
                boxes=self._boxes,
                rollback=len(client.rollback().records),
                refused_depth=any("Depth 4" in row.what for row in refused),
            )

    def press(self) -> Receipt | None:
        """``watchfloor panic`` as anybody would run it; its receipt, or None."""
        self._watched = cleanup.watched(self.first.places.instance_id)
        command = [sys.executable, "-m", "console", "panic", "--json", "--reason", "demo"]
        told = subprocess.run(
            [*command, "--state-dir", str(self.first.places.state_dir)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=host_environment(),
            timeout=120,
            check=False,
        )
        out.note(f"exit code {told.returncode}")
        try:
            return receipt_from_json(json.loads(told.stdout))
        except (ValueError, KeyError, TypeError):
            return None

    def after_press(self, receipt: Receipt | None) -> tuple[list[Promise], Receipt | None]:
        """What came of it, and the other host's receipt."""
        left = cleanup.settled(self.first.places.instance_id, self._engine, 5)
        left += [words for words in cleanup.still_alive(self._watched) if words not in left]
        obeyed, other_left = self._other_receipt() if self.other else (None, [])
        audit: AuditVerdict | None = None
        with suppress(ConsoleError), self.first.client as client:
            audit = client.verify_audit()
        seen = AfterPress(
            receipt=receipt,
            escaper=self._escaper(receipt),
            watched=len(self._watched),
            left_running=left,
            other=obeyed,
            other_left=other_left,
            remote=self._stand_ins.no_bucket,
            restart_refused=self._launch_once_more(),
            audit=audit,
        )
        return demo_checks.after_press(seen), obeyed

    def _escaper(self, receipt: Receipt | None) -> Target | None:
        ids = {agent.id for agent in self.fleet().agents if agent.name == demo_fleet.ESCAPER}
        return next((t for t in receipt.targets if t.agent_id in ids), None) if receipt else None

    def _launch_once_more(self) -> str:
        try:
            with self.first.client as client:
                client.launch(LaunchBody(argv=["true"], name="too-late"))
        except ConsoleError as error:
            return error.what
        return ""

    def _other_receipt(self) -> tuple[Receipt | None, list[str]]:
        assert self.other is not None  # asked only then
        with self.other.client as client:

            def obeyed() -> Receipt | None:
                with suppress(ConsoleError):
                    for row in client.receipts().receipts:
                        receipt = client.receipt(row.kill_id)
                        if receipt.order and receipt.complete:
                            return receipt
                return None

            receipt = _wait(obeyed, OTHER_S)
        return receipt or None, cleanup.settled(self.other.places.instance_id, self._engine, 5)

    # --- the end

    def end(self) -> list[str]:
        """Ends everything in the reverse order; what could not be ended or removed."""
        left: list[str] = []
        for host in reversed(self._hosts):
            left += host.stop()
        self._hosts.clear()
        self._stand_ins.stop()
        return left


def _wait(look: Callable[[], T], wait_s: float) -> T:
    """The first true answer, or the last one when the time is over."""
    deadline = time.monotonic() + wait_s
    while not (answer := look()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return answer
