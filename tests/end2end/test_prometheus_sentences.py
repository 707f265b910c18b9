"""Sentences about the alert rules and the dashboard, in a real Prometheus that reads a real supervisor's figures."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from console.api.budgets import BudgetBody
from tests.fakes.instance import ROOT, Instance, free_port, until
from tests.fakes.standing import standing_instance

GRAFANA = ROOT / "packaging" / "grafana"
BIN = f"{Path(sys.prefix, 'prometheus', 'usr', 'bin')}{os.pathsep}{os.environ['PATH']}"
"""Where packaging/test unpacks Debian's package, which would start a server of its own when it is installed."""
ASKS = "agent.usage(tokens=500, cost_usd=0.25)\nagent.permission('launch_rocket', 'now')\ntime.sleep(600)"
Figures = Callable[[], str]


def program(name: str) -> str:
    found = shutil.which(name, path=BIN)
    assert found, f"{name} is missing: packaging/test unpacks it"
    return found


class Scraped:
    """What Prometheus reads in place of the node exporter's file; None: no figures, as when the timer removed them."""

    def __init__(self, figures: Figures) -> None:
        self.figures: Figures | None = figures


@contextmanager
def served(scraped: Scraped) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = scraped.figures().encode() if scraped.figures is not None else b""
            self.send_response(200)
            self.send_header("content-type", "text/plain; version=0.0.4")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


class Prometheus:
    """The real server, with the rules of the repository; only how long a doubt must last is shorter."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/api/v1"

    def ask(self, expression: str) -> list[dict[str, Any]]:
        answer = httpx.get(f"{self.url}/query", params={"query": expression}, timeout=60, trust_env=False).json()
        assert answer["status"] == "success", answer
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def firing(self) -> dict[str, dict[str, str]]:
        """By name of the alert its annotations."""
        alerts = httpx.get(f"{self.url}/alerts", timeout=60, trust_env=False).json()["data"]["alerts"]
        return {one["labels"]["alertname"]: one["annotations"] for one in alerts if one["state"] == "firing"}


@contextmanager
def prometheus(folder: Path, target: int) -> Iterator[Prometheus]:
    rules = yaml.safe_load((GRAFANA / "alerts.yml").read_text())
    for rule in rules["groups"][0]["rules"]:
        rule |= {"for": "2s"} if "for" in rule else {}
    (folder / "alerts.yml").write_text(yaml.safe_dump(rules))
    config = {
        "global": {"scrape_interval": "2s", "evaluation_interval": "1s", "scrape_timeout": "2s"},
        "rule_files": ["alerts.yml"],
        "scrape_configs": [{"job_name": "watchfloor", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    port = free_port()
    argv = [program("prometheus"), f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*argv, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log, cwd=folder)
        try:
            made = Prometheus(port)
            until(lambda: _is_up(port), words="Prometheus is ready")
            yield made
        finally:
            process.terminate()
            process.wait(60)


def _is_up(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/-/ready", timeout=5, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    with standing_instance("--discover-root", str(tmp_path_factory.mktemp("home"))) as instance:
        yield instance


def panels() -> list[tuple[str, str, set[str]]]:
    """Title, expression and the labels of its legend of each panel of the dashboard, for every host; the variables as well."""
    dashboard = json.loads((GRAFANA / "dashboard.json").read_text())
    asked = [(one["title"], target["expr"], target["legendFormat"]) for one in dashboard["panels"] for target in one["targets"]]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            [found] = re.findall(r"^label_values\((.+), (\w+)\)$", variable["query"]["query"])
            asked.append((variable["name"], found[0], f"{{{{{found[1]}}}}}"))
    assert len(json.dumps(dashboard).split('"expr"')) - 1 == len(asked) - 1, "no expression stands where this test does not look"
    return [(title, expression.replace("$instance", ".*"), set(re.findall(r"{{(\w+)}}", legend))) for title, expression, legend in asked]


def test_each_panel_of_the_dashboard_returns_data_and_a_limit_and_lost_readiness_fire(it: Instance, tmp_path: Path) -> None:
    killed = it.python("time.sleep(600)")
    it.api.kill(killed, reason="a test")
    it.python(ASKS, limits={"tokens": 1000})
    until(lambda: it.api.approvals().waiting, words="it asks")
    until(lambda: (armed := it.api.status().armed) is not None and armed.state == "armed", words="the kill switch is tested")
    scraped = Scraped(lambda: it.scrape()[2])
    with served(scraped) as port, prometheus(tmp_path, port) as server:
        for title, expression, labels in panels():
            until(lambda expression=expression: server.ask(expression), words=f"{title}: {expression}")  # type: ignore[misc]
            assert all(labels <= set(one["metric"]) for one in server.ask(expression)), f"{title}: {labels}"
        assert server.firing() == {}
        spender = it.python("agent.usage(tokens=500)\ntime.sleep(600)")
        it.api.change_budget(BudgetBody(scope="agent", key=spender, limits={"tokens": 400}, reason="a test"))
        until(lambda: "WatchfloorLimitReached" in server.firing(), words="the limit fires")
        assert "limit tokens was reached" in server.firing()["WatchfloorLimitReached"]["summary"]
        guard = it.living_guard()
        os.kill(guard, signal.SIGSTOP)
        try:
            until(lambda: "WatchfloorReadinessLost" in server.firing(), words="readiness fires")
        finally:
            os.kill(guard, signal.SIGCONT)
        until(lambda: "WatchfloorReadinessLost" not in server.firing(), words="readiness is back")
        scraped.figures = None
        until(lambda: "WatchfloorMetricsGone" in server.firing(), words="the absence of figures fires")
        scraped.figures = lambda: it.scrape()[2]
        until(lambda: "WatchfloorMetricsGone" not in server.firing(), words="the figures are back")


CHANGES = {
    "WatchfloorApprovalWaiting": ("watchfloor_approval_oldest_seconds", "watchfloor_approval_oldest_seconds 301.0"),
    "WatchfloorAuditLag": ("watchfloor_audit_lag_seconds", "watchfloor_audit_lag_seconds 61.0"),
    "WatchfloorKillNotConfirmed": ("watchfloor_agents{", 'watchfloor_agents{kind="watchfloor",state="alive_after_kill"} 1.0'),
}
"""Of each alert that takes minutes, or a kernel that does not kill: the figure, and the line that stands in its place."""


@pytest.mark.parametrize("alert", CHANGES)
def test_an_alert_that_takes_minutes_fires_once_its_figure_is_there(it: Instance, tmp_path: Path, alert: str) -> None:
    name, line = CHANGES[alert]
    real = it.scrape()[2]
    assert f"# HELP {name.rstrip('{')} " in real, "the figure has the name that the supervisor serves"
    changed = "\n".join([x for x in real.splitlines() if not re.match(re.escape(name) + r"[ {]?", x)] + [line, ""])
    scraped = Scraped(lambda: real)
    with served(scraped) as port, prometheus(tmp_path, port) as server:
        until(lambda: server.ask("watchfloor_agents_live"), words="it is read")
        assert alert not in server.firing()
        scraped.figures = lambda: changed
        until(lambda: alert in server.firing(), words=f"{alert} fires")
        assert "127.0.0.1" in server.firing()[alert]["summary"] and "{{" not in str(server.firing()[alert])
        scraped.figures = lambda: real
        if alert != "WatchfloorKillNotConfirmed":
            until(lambda: alert not in server.firing(), words=f"{alert} ends")


def test_promtool_finds_nothing_wrong_with_the_rules() -> None:
    done = subprocess.run([program("promtool"), "check", "rules", str(GRAFANA / "alerts.yml")], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "6 rules found" in done.stdout, done.stdout + done.stderr
