"""``watchfloor network requests``: what agents asked for behind the allowlist; hosts and paths are an agent's words."""

from __future__ import annotations

import json

from tests.fakes.canned_api import CannedApi
from tests.fakes.verbs import Watchfloor

ONE = {"at": 1.0, "agent_id": "a-00000001", "method": "CONNECT", "host": "api.anthropic.com", "path": "", "status": 200, "allowed": True}
REFUSED = ONE | {"host": "evil\x1b[31m.test", "status": 403, "allowed": False, "rule": "no entry for CONNECT evil.test:443"}


def test_requests_are_shown_with_what_let_them_through_or_did_not(watchfloor: Watchfloor, api: CannedApi) -> None:
    api.say("GET /api/egress", {"egress": [REFUSED, ONE | {"rule": "its model's address"}]})
    said = watchfloor("network", "requests", "--limit", "7")
    assert said.code == 0 and "its model's address" in said.out and "no entry for CONNECT evil.test:443" in said.out
    assert "\x1b" not in said.out and [a.path for a in api.asked][-1] == "/api/egress?limit=7"
    said = watchfloor("network", "requests", "--blocked", "--columns", "passed,why", "--no-headers")
    assert (said.code, said.out.split(maxsplit=1)) == (0, ["no", "no entry for CONNECT evil.test:443\n"])
    assert [row["status"] for row in json.loads(watchfloor("network", "requests", "--blocked", "--json").out)["egress"]] == [403]


def test_no_request_is_said_and_of_an_agent_only_its_own_are_asked_for(watchfloor: Watchfloor, api: CannedApi) -> None:
    api.say("GET /api/egress", {"egress": [ONE]})
    api.say("GET /api/agents/a-00000001", {"agent": {"id": "a-00000001", "state": "running"}})
    said = watchfloor("network", "requests", "a-00000001", "--blocked")
    assert (said.code, said.out) == (0, "No refused request of a-00000001 is among the newest 1.\n"), "older ones may be"
    assert [a.path for a in api.asked][-1] == "/api/egress?limit=200&agent=a-00000001", "whether the agent is still known or not"
    api.say("GET /api/egress", {"egress": []})
    assert watchfloor("network", "requests", "a-00000001").out == "No request of a-00000001 is recorded.\n"
    assert watchfloor("network", "requests", "a-00000002").code == 3, "none of one that there never was"
    for limit in ("0", "-1", "1001"):
        assert watchfloor("network", "requests", "--limit", limit).code == 2, limit
