"""The rules in force: the newest good file, never a broken one, and what holds beside them for agents of ours."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.api.policy import policy_data
from console.domain.agent import Agent, ProcessIdentity, SandboxKind
from console.domain.calls.permission import PermissionRequest, Verdict
from console.domain.errors import ConsoleError
from console.domain.ids import ControlLevel
from console.domain.network import NetworkMode, Sensitivity
from console.killswitch.kernel import processes
from console.policy.dangers import read_dangers
from console.policy.rules.declared import Declared
from console.services.policy import config_fallback as last_good
from console.services.policy import service as policy_desk
from console.services.policy.service import PolicyDesk
from console.settings.places import Places, find_places
from tests.fakes.playbook import Playbook


@pytest.fixture
def places(tmp_path: Path) -> Places:
    made = find_places(str(tmp_path / "state"), create=True)
    (made.workspaces_dir / "c").mkdir(parents=True)
    return made


@pytest.fixture
def alarms() -> list[str]:
    return []


@pytest.fixture
def desk(places: Places, alarms: list[str]) -> Callable[..., PolicyDesk]:
    return lambda **more: PolicyDesk(places, alarms.append, policy_data.dangers, lambda _agent_id: None, **more)


def agent(**fields: Any) -> Agent:
    made = Playbook().run("a", context_id="c").agent("a")
    return replace(made, **{"network_mode": NetworkMode.PROXIED, **fields})


def rules(places: Places, **lists: list[str]) -> None:
    draft = places.policy_file.with_suffix(".new")
    draft.write_text(json.dumps({"permissions": lists}))
    draft.replace(places.policy_file)


def verdict(desk: PolicyDesk, tool: str, argument: str, who: Agent | None = None, **more: str) -> Verdict:
    return desk.judge(who or agent(), PermissionRequest(tool, argument, **more)).decision.verdict


def test_without_a_file_the_products_own_rules_hold(desk: Any) -> None:
    made = desk()
    assert verdict(made, "write_file", "a.txt") is Verdict.ALLOW
    assert verdict(made, "shell", "ls -la") is Verdict.ALLOW
    assert verdict(made, "shell", "rm -rf /") is Verdict.DENY
    assert verdict(made, "launch_rocket", "now") is Verdict.ASK


def test_an_edit_holds_for_the_next_call_and_every_part_says_its_rule(desk: Any, places: Places) -> None:
    made = desk()
    rules(places, allow=["shell(wc -l:*)"], deny=["shell(ls:*)"])
    assert verdict(made, "shell", "wc -l") is Verdict.ALLOW
    told = made.judge(agent(), PermissionRequest("shell", "wc -l && ls"))
    assert (told.decision.verdict, told.decision.rule) == (Verdict.DENY, "shell(ls:*)")
    assert [(p.text, p.verdict) for p in told.parts][0] == ("wc -l", "allow")


@pytest.mark.parametrize("broken", [b"", b"{", b'{"permissions": {}}', b"\xff"])
def test_a_broken_file_keeps_the_last_good_rules_over_a_restart_too_and_raises_an_alarm(
    desk: Any, places: Places, alarms: list[str], broken: bytes
) -> None:
    rules(places, allow=["shell(wc:*)"], deny=["shell(ls:*)"])
    made = desk()
    assert verdict(made, "shell", "ls") is Verdict.DENY and not alarms
    places.policy_file.write_bytes(broken)
    assert verdict(made, "shell", "ls") is Verdict.DENY and "last good rules stay in force" in alarms[-1] and made.problem
    assert verdict(made, "shell", "ls") is Verdict.DENY and len(alarms) == 1  # said once
    assert verdict(desk(), "shell", "ls") is Verdict.DENY
    rules(places, allow=["shell(ls:*)", "file(read:${WORKSPACE}/**)"])
    assert verdict(made, "shell", "ls") is Verdict.ALLOW and made.problem == ""


def test_a_rule_that_swallows_denials_is_named_and_not_in_force(desk: Any, places: Places, alarms: list[str]) -> None:
    rules(places, allow=["shell(bash:*)", "shell(wc:*)"], deny=["shell(rm:*)"])
    made = desk()
    assert verdict(made, "shell", "bash x.sh") is not Verdict.ALLOW and verdict(made, "shell", "wc") is Verdict.ALLOW
    assert len(alarms) == 1 and "shell(bash:*)" in alarms[0] and made.problem == ""


def test_with_nothing_good_at_all_everything_is_denied(desk: Any, places: Places, alarms: list[str]) -> None:
    places.policy_file.write_bytes(b"{")
    made = desk()
    assert verdict(made, "shell", "ls") is Verdict.DENY and verdict(made, "write_file", "a") is Verdict.DENY
    assert "everything is denied" in alarms[0]


def test_rules_that_are_gone_are_not_replaced_by_others(desk: Any, places: Places, alarms: list[str]) -> None:
    rules(places, deny=["shell(ls:*)"])
    made = desk()
    places.policy_file.unlink()
    assert verdict(made, "shell", "ls") is Verdict.DENY and "it is gone" in alarms[0]
    assert verdict(desk(), "shell", "ls") is Verdict.DENY


def test_a_file_that_is_a_folder_or_cannot_be_read_is_a_broken_one(desk: Any, places: Places, alarms: list[str]) -> None:
    places.policy_file.mkdir()
    assert verdict(desk(), "shell", "ls") is Verdict.DENY and alarms


@pytest.mark.parametrize("path", ["../../ledger.db", "/etc/passwd", "link/x", "fifo", "/tmp/x"])
def test_what_no_rollback_record_can_be_kept_of_is_denied_whatever_the_rules_say(desk: Any, places: Places, path: str) -> None:
    rules(places, allow=["file(write:/**)", "file(delete:/**)"])
    os.symlink("/etc", places.workspaces_dir / "c" / "link")
    os.mkfifo(places.workspaces_dir / "c" / "fifo")
    assert verdict(desk(), "write_file", path) is Verdict.DENY and verdict(desk(), "delete_file", path) is Verdict.DENY
    assert verdict(desk(), "write_file", str(places.workspaces_dir / "c" / "x")) is Verdict.ALLOW


def test_the_allowlist_decides_on_hosts_that_no_rule_names_and_never_past_a_rule(desk: Any, places: Places) -> None:
    rules(
        places,
        allow=["shell(ls:*)", "file(read:${WORKSPACE}/**)"],
        deny=["network(outbound:evil.example)"],
        ask=["network(outbound:paste.example)"],
    )
    made = desk()
    told = made.judge(agent(), PermissionRequest("http_request", "https://x.example/"))
    assert (told.decision.verdict, told.decision.rule) == (Verdict.ALLOW, "allowlist")
    assert verdict(made, "http_request", "https://evil.example/") is Verdict.DENY
    assert verdict(made, "http_request", "https://paste.example/") is Verdict.ASK


def test_of_one_that_is_only_seen_the_workspace_is_the_folder_it_works_in(desk: Any, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    with subprocess.Popen(["sleep", "60"], cwd=project) as child:
        me = ProcessIdentity(child.pid, processes.start_ticks(child.pid) or 0)
        seen = agent(control_level=ControlLevel.OBSERVED, process=me, cwd=str(tmp_path))  # its transcript would have more
        assert verdict(desk(), "write_file", str(project / "x"), seen) is Verdict.ALLOW
        assert verdict(desk(), "write_file", str(tmp_path / "other"), seen) is Verdict.ASK
        assert verdict(desk(), "http_request", "https://x.example/", seen) is Verdict.ASK  # no allowlist holds it
        child.kill()
    assert desk().workspace_of(replace(seen, process=None)) == Path("/nonexistent")


def test_private_data_scopes_and_what_its_type_declares_are_joined(desk: Any) -> None:
    secret = agent(sensitivity=Sensitivity.SECRET)
    assert verdict(desk(), "http_request", "https://x.example/", secret) is Verdict.DENY
    assert verdict(desk(), "write_file", "a", agent(scopes=("READ_FS",))) is Verdict.DENY
    declared = Declared(web_enabled=False)
    assert verdict(desk(declared_of=lambda _: declared), "http_request", "https://x.example/") is Verdict.DENY

    def broken(_agent: Agent) -> Declared:
        raise ConsoleError("its type cannot be read", "")

    told = desk(declared_of=broken).judge(agent(), PermissionRequest("shell", "ls"))
    assert (told.decision.verdict, told.decision.rule) == (Verdict.DENY, "policy")


def test_a_containers_own_files_are_not_taken_for_those_of_this_machine_and_its_workspace_is(desk: Any, places: Places) -> None:
    inside = agent(sandbox=SandboxKind.DOCKER)
    os.symlink("/etc", places.workspaces_dir / "c" / "link")
    rules(places, allow=["shell(cat:*)", "file(read:${WORKSPACE}/**)"])
    made = desk()
    assert verdict(made, "shell", "cat data/x", inside) is Verdict.ALLOW
    assert verdict(made, "shell", "cat link/passwd", inside) is Verdict.ASK
    assert verdict(made, "shell", f"cat {places.workspaces_dir}/c/../../ledger.db", inside) is Verdict.ASK
    assert verdict(made, "shell", "cat /etc/passwd", inside) is Verdict.ASK


@pytest.mark.parametrize("command", ["rm -rf /", "rm -r /usr/", "rm -rf //etc", "cat /etc/shadow"])
def test_what_the_rules_deny_is_denied_in_a_container_too(desk: Any, command: str) -> None:
    assert verdict(desk(), "shell", command, agent(sandbox=SandboxKind.DOCKER)) is Verdict.DENY


def test_many_sessions_do_not_pile_up(desk: Any, places: Places) -> None:
    made = desk()
    for number in range(70):
        verdict(made, "shell", "ls", agent(context_id=f"c{number}"))
    assert len(made._compiled) <= 64


def test_rules_behind_a_link_are_taken_up_when_they_change(desk: Any, places: Places, tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles.json"
    kept.write_text(json.dumps({"permissions": {"allow": ["shell(ls:*)"]}}))
    places.policy_file.symlink_to(kept)
    made = desk()
    assert verdict(made, "shell", "ls -la") is Verdict.ALLOW
    kept.write_text(json.dumps({"permissions": {"deny": ["shell(ls:*)"], "allow": []}}))
    assert verdict(made, "shell", "ls -la") is Verdict.DENY


def test_a_link_to_nothing_is_a_broken_file_and_not_the_products_own_rules(desk: Any, places: Places, alarms: list[str]) -> None:
    places.policy_file.symlink_to("nowhere.json")
    assert verdict(desk(), "shell", "ls -la") is Verdict.DENY and len(alarms) == 1


def test_a_pipe_in_its_place_keeps_nobody_waiting(desk: Any, places: Places, alarms: list[str]) -> None:
    os.mkfifo(places.policy_file)
    assert verdict(desk(), "shell", "ls -la") is Verdict.DENY and "no plain file" in alarms[0]


def test_many_harmless_parts_never_push_out_the_one_that_asks(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_desk, "PARTS_MAX", 3)
    told = desk().judge(agent(), PermissionRequest("shell", "ls; ls; ls; ls; launch-rocket"))
    assert len(told.parts) == 3 and told.parts[0].verdict == "ask" and "launch-rocket" in told.parts[0].text


def test_a_list_of_dangers_of_ones_own_asks_whatever_the_rules_allow(desk: Any, places: Places) -> None:
    rules(places, allow=["shell(ls:*)", "file(read:${WORKSPACE}/**)"])
    made = desk()
    assert verdict(made, "shell", "ls -la") is Verdict.ALLOW
    own = (*policy_data.dangers(), *read_dangers({"dangers": [{"name": "look", "why": "it sees", "program": "ls", "any": "-la"}]}, "mine"))
    made.dangers = lambda: own
    assert verdict(made, "shell", "ls -la") is Verdict.ASK and verdict(made, "shell", "ls") is Verdict.ALLOW
    made.dangers = policy_data.dangers
    assert verdict(made, "shell", "ls -la") is Verdict.ALLOW


def test_rules_that_a_restart_would_not_know_of_allow_nothing_until_they_are_kept(
    desk: Any, places: Places, alarms: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = desk()

    def no_room(*_anything: object, **_more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(last_good, "AGAIN_S", 0.0)
    with monkeypatch.context() as full:
        full.setattr(last_good, "replace_file", no_room)
        full.setattr(last_good.LastGood, "_through_reserve", lambda *_: False)
        full.setattr(os, "link", no_room)
        places.policy_file.write_text('{"permissions": {"allow": ["shell(ls:*)", "file(read:${WORKSPACE}/**)"]}}')
        found = made.judge(Playbook().run("a", context_id="c").agent("a"), PermissionRequest("shell", "ls"))
        assert found.decision.verdict is Verdict.DENY and "No space left" in found.decision.reason and "No space left" in alarms[-1]
    assert verdict(made, "shell", "ls") is Verdict.ALLOW and not made.problem
