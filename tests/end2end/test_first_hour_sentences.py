"""The first hour of an ordinary account that installed Watchfloor and named no folder."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.user_world import ROOT, as_user, user_python

STORY = str(ROOT / "tests" / "fakes" / "first_hour_story.py")


def test_the_list_of_agents_starts_the_instance_which_sees_the_accounts_own_agents_and_a_panic_leaves_them(state_dir: Path) -> None:
    told = as_user(state_dir / "u", "plain", user_python(), STORY)
    assert told["other"][0] == 3 and not (state_dir / "u" / "typo").exists(), "a folder that was named may be a mistake"
    assert told["first"][0] == 0 and "my session" in told["first"][1], told["first"]
    assert told["hook"][0] == told["run"][0] == 0, told
    assert told["seen"] == ["my session"]
    assert told["session"] is None, told["panic"]
    assert "no writable cgroup" in told["adopt"][1] + told["adopt"][2], "an adoption is refused here, so nothing recommends it"
    code, _, said = told["freeze"]
    assert code == 1 and f"Kill it (watchfloor kill {told['other_id']}); it cannot be adopted: " in said and "watchfloor adopt" not in said
    status, agent = told["status"][1], told["run"][1].split()[0]
    now = f" (now of {agent})" if agent in told["unproven"] else ""  # bubblewrap, where it is installed, and user namespaces prove a kill
    assert f"kill of an agent without a sandbox: best effort{now}; then confirmed" in status, status
    assert "root runs: sudo " in status and "guard: an agent of your account can end it; then no agent can end it" in status
