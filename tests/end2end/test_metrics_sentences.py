"""GET /metrics of a real supervisor: what it holds, as figures that Prometheus reads; what is unknown is not there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from console.api import budgets as b
from console.api.policy.approvals import DecideBody
from tests.fakes.instance import Instance, until
from tests.fakes.standing import standing_instance

Figures = dict[tuple[str, ...], float]
HOSTILE = 'x"} 1\nwatchfloor_killed 7\n# \\ \u202e'
WORK = """
agent.permission('launch_rocket', 'now')
agent.usage(tokens=500, cost_usd=0.25)
time.sleep(300)
"""


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """One that sees no other program of this host: those would be in its sums."""
    with standing_instance("--discover-root", str(tmp_path_factory.mktemp("home"))) as instance:
        yield instance


def figures(it: Instance) -> Figures:
    """(name, label values in the order of their names ...) -> value; fails on a sample that is there twice."""
    found: Figures = {}
    for family in text_string_to_metric_families(it.scrape()[2]):
        assert family.documentation and family.type != "unknown", family.name
        for sample in family.samples:
            place = (sample.name, *(sample.labels[name] for name in sorted(sample.labels)))
            assert place not in found, place
            found[place] = sample.value
    return found


def kills(it: Instance) -> float:
    return sum(value for place, value in figures(it).items() if place[0] == "watchfloor_kills")


def test_an_agent_from_its_first_question_to_its_end_in_figures(it: Instance) -> None:
    before = kills(it)
    agent = it.python(WORK, name=HOSTILE, limits={"tokens": 1000})
    row = until(lambda: [one for one in it.api.approvals().waiting if one.agent_id == agent], words="it asks")[0]
    seen = figures(it)
    assert seen["watchfloor_agents_live",] == 1 and seen["watchfloor_agents", "watchfloor", "needs_ok"] == 1
    assert seen["watchfloor_approvals_waiting",] == 1 and seen["watchfloor_approval_oldest_seconds",] >= 0
    assert seen["watchfloor_spend_unknown_agents",] == 1
    assert ("watchfloor_spend_today_usd",) not in seen and ("watchfloor_burn_usd_per_hour",) not in seen  # unknown is never 0
    assert ("watchfloor_limit_used_ratio", "tokens", "agent") not in seen
    asked = {place: value for place, value in seen.items() if place[0] == "watchfloor_verdicts_total"}
    assert asked == {("watchfloor_verdicts_total", row.rule, "ask"): 1}

    body = {"requests": [{"id": row.id, "digest": row.digest}], "verdict": "deny", "reason": "no"}
    assert it.api.decide(DecideBody.read(body)).results[0].done
    until(lambda: it.agent(agent).usage["tokens"] == 500, words="it has reported")
    seen = figures(it)
    assert seen["watchfloor_verdicts_total", "approval", "deny"] == 1
    assert seen["watchfloor_approvals_waiting",] == 0 and ("watchfloor_approval_oldest_seconds",) not in seen
    assert seen["watchfloor_spend_today_usd",] == 0.25 and seen["watchfloor_spend_unknown_agents",] == 0
    assert seen["watchfloor_burn_usd_per_hour",] > 0 and seen["watchfloor_limit_used_ratio", "tokens", "agent"] == 0.5

    # What an agent calls itself, its id and its folder are in no label and make no line.
    text = it.scrape()[2]
    assert "u202e" not in text and "\u202e" not in text and agent not in text and seen["watchfloor_killed",] == 0

    it.api.change_budget(b.BudgetBody(scope="agent", key=agent, limits={"tokens": 400}, reason="a test"))
    it.state_becomes(agent, "halted")
    until(lambda: kills(it) == before + 1, words="its receipt is there")
    until(lambda: figures(it)["watchfloor_kills", "open"] == 0, words="its receipt is complete")
    seen = figures(it)
    assert seen["watchfloor_halted_agents_total", "tokens", "agent"] == 1 and seen["watchfloor_agents_live",] == 0
    assert seen["watchfloor_kill_seconds_count",] == seen["watchfloor_kill_seconds_bucket", "+Inf"] == seen["watchfloor_kills", "confirmed"]
    assert not [place for place in seen if place[0] == "watchfloor_agents"]


def test_a_kill_of_everything_is_a_figure_and_readiness_is_unknown_until_it_is_tested_again(it: Instance) -> None:
    def is_tested() -> bool:
        seen = figures(it)
        return seen.get(("watchfloor_kill_path_ready", "local")) == 1 and ("watchfloor_kill_path_proof_age_seconds", "local") in seen

    until(is_tested, words="the kill switch was tested")
    assert ("watchfloor_kill_path_ready", "remote") not in figures(it)  # not set up: neither ready nor lost
    it.api.activate("a test")
    seen = figures(it)
    assert seen["watchfloor_killed",] == 1 and ("watchfloor_kill_switch_ready",) not in seen
    it.api.rearm("a test")
    until(lambda: ("watchfloor_kill_switch_ready",) in figures(it), words="readiness is known again")
    assert figures(it)["watchfloor_killed",] == 0


def test_a_forged_token_and_an_agent_read_nothing(it: Instance) -> None:
    """The door itself refuses agents and other accounts, as of every route (tests of the door)."""
    assert it.scrape()[:2] == (200, "text/plain; version=1.0.0; charset=utf-8")
    status, _, text = it.scrape(Authorization="Bearer forged")
    assert status == 403 and "watchfloor_" not in text
    knock = (
        "import socket\n"
        "def knock(path):\n"
        "    with socket.socket(socket.AF_UNIX) as s:\n"
        "        s.settimeout(60)\n"
        "        try: s.connect(path)\n"
        "        except OSError as error: return type(error).__name__\n"
        "        s.sendall(b'GET /metrics HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n')\n"
        "        return s.recv(200).split(b' ')[1].decode()\n"
        f"print('knocked', knock(agent.path), knock({str(it.places.operator_sock)!r}), 'done', flush=True)\n"
        "time.sleep(300)"
    )
    own, operators = it.says(it.python(knock), "done").split("knocked", 1)[1].split()[:2]
    assert own == "404" and operators in ("403", "FileNotFoundError", "PermissionError", "ConnectionRefusedError")
