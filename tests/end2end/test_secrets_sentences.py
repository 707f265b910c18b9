"""What a person relies on about secrets, against a real supervisor, a real guard, real programs and a real server."""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from console.api.secrets import RotationBody, RotationValueBody, TokenBody
from console.domain.errors import Conflict, Killed, NotFound, TokenRefused, UsageProblem
from console.domain.kill import Receipt, Step
from console.killswitch.client.guard_client import GuardClient
from tests.fakes.instance import ROOT, Instance, files_below, until
from tests.fakes.nursery import SHARED
from tests.fakes.vault import NAMES, Vault

OWN = ["signing-key", "operator-tokens", "agent-tokens", "api-key"]


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Vault]:
    with Vault(tmp_path / "vault") as made:
        yield made


@pytest.fixture
def it(state_dir: Path) -> Iterator[Instance]:
    with Instance(state_dir) as instance:
        yield instance


def told(it: Instance, vault: Vault) -> None:
    """The plan, and the values in force that cannot be read back."""
    vault.write_plan(it.state_dir)
    for name in NAMES:
        if name != "mail":
            it.api.tell_value(RotationValueBody(name=name, value=vault.old[name]))


def press(it: Instance) -> str:
    guard = GuardClient(it.places.guard_sock, timeout_s=90)
    try:
        return guard.press("all", "secrets", "test", timeout_s=90)
    finally:
        guard.close()


def finished(it: Instance, kill_id: str) -> Receipt:
    def whole() -> Receipt | None:
        try:
            receipt = it.api.receipt(kill_id)
        except NotFound:
            return None
        return receipt if receipt.complete else None

    return until(whole, words="the receipt is complete")  # type: ignore[return-value]


def rotate_step(receipt: Receipt) -> Step:
    return next(step for step in receipt.steps if step.name == "rotate")


def asked(it: Instance, method: str, path: str, token: str = "", body: object = None) -> tuple[int, bytes]:
    """One request by hand: what the socket truly sends."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(90)
        sock.connect(str(it.places.operator_sock))
        connection = http.client.HTTPConnection("watchfloor")
        connection.sock = sock
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.read()


def forms(value: str) -> list[bytes]:
    raw = value.encode()
    return [raw, base64.b64encode(raw).rstrip(b"=")[:-1], raw.hex().encode(), urllib.parse.quote(value, safe="").encode()]


def leaks(it: Instance, values: list[str]) -> list[str]:
    """Where any of these values stands in any form: every file of the state directory but the store, and every answer of the API."""
    found = []
    texts = {str(path): data for path, data in files_below(it.state_dir).items() if path.name != "secrets.json"}
    kills = [row.kill_id for row in it.api.receipts().receipts]
    paths = ["status", "fleet", "kill-switch", "receipts", "audit", "rotation", *(f"receipts/{k}" for k in kills)]
    texts |= {path: asked(it, "GET", f"/api/{path}")[1] for path in paths}
    for where, text in texts.items():
        found += [f"{value} as {form!r} in {where}" for value in values for form in forms(value) if form in text]
    return found


def test_a_supervisor_that_dies_at_each_of_five_secrets_goes_on_and_no_old_value_lives(it: Instance, vault: Vault) -> None:
    told(it, vault)
    old_key = it.api.new_api_key().api_key
    token = it.api.operator_token(TokenBody(api_key=old_key)).token
    assert asked(it, "GET", "/api/token-check", token)[0] == 200 == asked(it, "GET", "/api/token-check", old_key)[0]
    for trigger in ("die-before-deploy", "die-after-webhook", "die-before-cloud", "die-verify-mail", "die-verify-export"):
        vault.arm(trigger)
    assert it.process is not None
    vault.supervisor_pid = it.process.pid
    kill_id = press(it)
    for left in range(5, 0, -1):
        assert it.process.wait(90) == -signal.SIGKILL, left
        it.stop()
        assert len(list(vault.folder.glob("die-*"))) == left - 1
        it.start()
        assert it.process is not None
        vault.supervisor_pid = it.process.pid
    receipt = finished(it, kill_id)
    step = rotate_step(receipt)
    assert receipt.verified_zero and step.status == "ok", step
    assert "took up an unfinished rotation" in step.detail and "presented again at the supervisor's next start" in step.detail
    view = it.api.rotation()
    assert [i.name for i in view.items] == [*OWN, *NAMES] and all(i.ok for i in view.items) and not view.unfinished
    for name in NAMES:
        assert vault.now(name) not in ("", vault.old[name])
        assert subprocess.run([vault.program, "verify", name], input=vault.old[name].encode(), check=False).returncode == 1
    assert asked(it, "GET", "/api/token-check", token)[0] == 401 == asked(it, "GET", "/api/token-check", old_key)[0]
    values = [*vault.old.values(), *(vault.now(name) for name in NAMES), old_key]
    assert leaks(it, values) == []
    assert not (vault.folder / "seen-in-proc").exists(), "no value in anybody's arguments or environment"
    # Once more after a restart.
    it.stop()
    it.start()
    until(lambda: {i.again for i in it.api.rotation().items} == {"refused"}, words="presented a second time")
    until(lambda: "presented again after a restart" in rotate_step(it.api.receipt(kill_id)).detail, words="the receipt says so")
    assert rotate_step(it.api.receipt(kill_id)).status == "ok" and leaks(it, values) == []
    until(lambda: "secrets.presented_again" in [row.kind for row in it.api.audit().rows])


def test_a_value_that_comes_back_to_life_after_a_restart_is_rotated_anew(it: Instance, vault: Vault) -> None:
    told(it, vault)
    assert it.api.rotate(RotationBody(reason="before leave")).last_ok
    it.stop()
    (vault.folder / "now-mail").write_text(vault.old["mail"])
    it.start()
    until(lambda: any("work again" in n for n in it.api.status().notices), words="it is said")
    until(lambda: vault.now("mail") != vault.old["mail"], words="and replaced")
    until(lambda: it.api.rotation().last_ok, words="and proven")
    until(lambda: [r.verdict for r in it.api.audit().rows if r.kind == "secrets.presented_again"][-1:] == ["failed"], words="recorded")


def test_what_a_program_says_about_a_secret_is_shown_without_it(standing: Instance, vault: Vault) -> None:
    it = standing
    told(it, vault)
    vault.arm("fail-deploy")
    view = it.api.rotate(RotationBody(items=["deploy"], reason=f"leaked: {vault.old['deploy']}"))
    [item] = [i for i in view.items if i.name == "deploy"]
    assert item.ok is False and view.unfinished and item.detail.count("[secret]") == 5, item.detail
    until(lambda: next(p for p in it.api.kill_switch().paths if p.name == "secrets").state == "in_doubt", words="the armed light is amber")
    store = json.loads((it.places.keys_dir / "secrets.json").read_text())
    assert leaks(it, [vault.old["deploy"], store["new.deploy"]]) == []
    assert it.api.rotate(RotationBody(items=["deploy"], reason="again")).last_ok and vault.now("deploy") == store["new.deploy"]


def test_a_broken_plan_fails_the_step_and_says_why_while_our_own_keys_are_rotated(it: Instance, vault: Vault) -> None:
    (it.state_dir / "rotation.json").write_text('{"schema_version": 1, "items": [{"kind": "file", "name": "x", "path": "y"}]}')
    (it.state_dir / "rotation.json").chmod(0o600)
    with pytest.raises(TokenRefused):
        it.api.operator_token(TokenBody(api_key="wfk_guess"))
    step = rotate_step(it.api.activate("broken plan"))
    assert step.status == "failed" and "items.0.verify: Field required" in step.detail and "signing-key" in step.detail, step
    # The rotation stays up while killed: mended, it is run again.
    told(it, vault)
    view = it.api.rotate(RotationBody(reason="mended"))
    assert view.last_ok and not view.plan_error, view
    with pytest.raises(NotFound, match="no item"):
        it.api.rotate(RotationBody(items=["nothing"], reason="x"))
    with pytest.raises(UsageProblem, match="read from where it is kept"):
        it.api.tell_value(RotationValueBody(name="mail", value="12345678"))
    with pytest.raises(Killed):
        it.api.operator_token(TokenBody(api_key="wfk_guess"))


LIARS = {
    "stale": (
        "sys.exit(0 if sys.stdin.readline().strip() == open(NOW).read() else 1)",
        "open(NOW, 'w').write(json.load(sys.stdin)['new'])",
    ),
    "agrees": ("sys.exit(0)", ""),
    "shouts": ("", "got = json.load(sys.stdin); sys.stderr.write((got['old'] + got['new']) * 500); sys.exit(3)"),
    "talks": ("while True: sys.stdout.write('x' * 65536)", ""),
    "hangs": ("time.sleep(600)", ""),
}
"""Programs of a plan that do what they should not: (verify, change)."""


def liars(folder: Path) -> list[dict[str, object]]:
    items: list[dict[str, object]] = []
    for name, (verify, change) in LIARS.items():
        paths = []
        for what, text in (("verify", verify), ("change", change)):
            path = folder / f"{what}-{name}"
            path.write_text(f"#!{sys.executable} -IS\nimport json, os, sys, time\nNOW = {str(folder / ('now-' + name))!r}\n{text}\n")
            path.chmod(0o700)
            paths.append([str(path)])
        given = {"kind": "command", "argv": paths[0], "timeout_s": 1.0 if name == "hangs" else 30.0}
        items.append({"name": name, "kind": "command", "command": {"argv": paths[1], "timeout_s": 30.0}, "verify": given})
    return items


def test_programs_that_hang_lie_and_talk_without_end_make_nothing_green_and_show_no_value(it: Instance, tmp_path: Path) -> None:
    folder = tmp_path / "liars"
    folder.mkdir(mode=0o700)
    plan, values = it.state_dir / "rotation.json", {name: f"old-value-of-{name}-0123456789" for name in LIARS}
    plan.write_text(json.dumps({"schema_version": 1, "items": liars(folder)}))
    plan.chmod(0o600)
    (folder / "now-stale").write_text("the value that is truly in force")
    for name, value in values.items():
        it.api.tell_value(RotationValueBody(name=name, value=value))
    kill_id = press(it)
    receipt = finished(it, kill_id)
    assert receipt.verified_zero and rotate_step(receipt).status == "failed"
    with pytest.raises(Conflict, match="of the secrets is not confirmed"):  # the rotation runs again, and nothing gets greener
        it.api.rearm("too early", kill_id)
    view = {i.name: i for i in it.api.rotation().items}
    assert all(view[name].ok for name in OWN), "our own secrets are rotated all the same"
    assert not any(view[name].ok for name in LIARS), view
    said = {name: view[name].detail for name in LIARS}
    assert "took longer than 1 s" in said["hangs"] and "printed more than 65536 bytes" in said["talks"]
    assert said["agrees"].startswith("failed: the old value is still accepted")
    assert said["stale"].startswith("unknown: its verifier refused the old value before the change too"), said
    assert "[secret]" in said["shouts"] and len(said["shouts"]) <= 400
    store = json.loads((it.places.keys_dir / "secrets.json").read_text())
    assert leaks(it, [*values.values(), *(store[f"new.{name}"] for name in LIARS)]) == []
    # Whoever takes the liars out of the plan gets the way back, and no green receipt.
    plan.write_text('{"schema_version": 1}')
    assert it.api.rotate(RotationBody(reason="without the liars")).last_ok is False
    step = rotate_step(it.api.receipt(kill_id))
    assert step.status == "unknown" and "stale is not proven and never will be" in step.detail, step
    it.api.rearm("without the liars", kill_id)
    assert it.api.rotation().last_ok and rotate_step(it.api.receipt(kill_id)).status == "unknown", "rearmed, and amber for good"
    # The record of it all is lost: said after the next start.
    (it.places.keys_dir / "rotation-last.json").unlink()
    it.stop()
    it.start()
    until(lambda: it.api.rotation().last_ok is False, words="the lost record is seen")
    assert "record of the last rotation is lost" in it.api.rotation().last_detail


def _two_lines(it: Instance, agent: str) -> bool:
    return it.output(agent).count("\n") >= 2


AGENT = """
import http.client, json, socket
def link():
    sock = socket.socket(socket.AF_UNIX); sock.settimeout(90); sock.connect(os.environ["WATCHFLOOR_AGENT_SOCKET"])
    made = http.client.HTTPConnection("localhost"); made.sock = sock
    return made
def ask(made, method="GET", path="/v1/self", token=""):
    made.request(method, path, b"{}" if method == "POST" else None, {"Authorization": "Bearer " + token} if token else {})
    answer = made.getresponse(); body = answer.read()
    return answer.status, json.loads(body)
kept, token = link(), os.environ["AGENT_AUTH_TOKEN"]
print("first", ask(kept, token=token)[0], ask(link(), token=token[:-3] + "abc")[0], flush=True)
print("fresh", ask(kept, token=ask(link(), "POST", "/v1/token")[1]["token"])[0], "TOKEN", token, flush=True)
try:
    kept.sock.settimeout(90)
    print("cut", kept.sock.recv(1), flush=True)
except OSError as error:
    print("cut", type(error).__name__, flush=True)
for route in (("GET", "/v1/self", token), ("GET", "/v1/self"), ("POST", "/v1/token"), ("POST", "/v1/usage")):
    try:
        print("then", route[0], route[1], ask(link(), *route)[0], flush=True)
    except OSError:
        pass  # no supervisor at the moment
print("done", flush=True)
time.sleep(300)
"""


def test_one_agents_token_is_revoked_alone_at_once_and_for_good(it: Instance) -> None:
    one, two = it.python(AGENT), it.python(AGENT)
    tokens = {}
    for agent in (one, two):
        said = it.says(agent, "fresh 200 TOKEN ")
        it.says(agent, "TOKEN ")
        until(partial(_two_lines, it, agent))
        assert "first 200 401" in said, "its own token is good; one that is not is never ignored"
        tokens[agent] = it.output(agent).split("TOKEN ")[1].split()[0]
        assert asked(it, "GET", "/api/token-check", tokens[agent])[0] == 200
    done = it.api.revoke_token(one)
    assert done.connections_cut >= 1
    said = it.says(one, "done")
    assert [line.split()[-1] for line in said.splitlines() if line.startswith("then")] == ["401"] * 4, said
    assert asked(it, "GET", "/api/token-check", tokens[one])[0] == 401
    assert asked(it, "GET", "/api/token-check", tokens[two])[0] == 200 and "cut" not in it.output(two)
    with pytest.raises(NotFound):
        it.api.revoke_token("nobody")
    # A rotation and a restart lift it no more than they lift anything else.
    it.api.rotate(RotationBody(reason="routine"))
    it.stop()
    it.start()
    until(lambda: one in [a.id for a in it.api.fleet().agents])
    assert it.agent(one).state == "running" and it.agent(two).state == "running"
    assert asked(it, "GET", "/api/token-check", tokens[two])[0] == 401, "signed with the old key"
    assert it.places.keys_dir.joinpath("tokens.json").read_text().count(one) == 1
    until(lambda: "secrets.revoked" in [row.kind for row in it.api.audit().rows])
    assert it.api.activate("the end").verified_zero


def test_a_stream_opened_with_a_token_ends_with_the_token(standing: Instance) -> None:
    it = standing
    token = it.api.operator_token(TokenBody(api_key=it.api.new_api_key().api_key)).token
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(90)
        sock.connect(str(it.places.operator_sock))
        sock.sendall(f"GET /api/events HTTP/1.1\r\nhost: watchfloor\r\nauthorization: Bearer {token}\r\n\r\n".encode())
        assert b"200 OK" in sock.recv(4096)
        ended = threading.Event()

        def read() -> None:
            while sock.recv(65536):
                pass
            ended.set()

        thread = threading.Thread(target=read)
        thread.start()
        it.api.rotate(RotationBody(items=["operator-tokens"], reason="stolen laptop"))
        assert ended.wait(90), "the socket is closed"
        thread.join()
    assert asked(it, "GET", "/api/events", token)[0] in (401, 403)


def test_from_a_terminal(standing: Instance, vault: Vault) -> None:
    it = standing

    def watchfloor(*argv: str, given: str = "") -> tuple[int, str, str]:
        verb = SHARED[0].verb(*argv, "--state-dir", str(it.state_dir), cwd=ROOT, env=dict(os.environ), given=given)
        return verb.wait(90), verb.said(), verb.complaints()

    vault.write_plan(it.state_dir)
    code, out, err = watchfloor("secrets", "rotation", "put", "deploy", given=vault.old["deploy"] + "\n")
    assert code == 0 and "deploy" in out and vault.old["deploy"] not in out + err
    assert watchfloor("secrets", "rotation", "put", "deploy", given="short")[0] == 2
    code, out, _ = watchfloor("secrets", "rotation", "run", "deploy", "--reason", "routine", "--json")
    assert code == 0 and next(i for i in json.loads(out)["items"] if i["name"] == "deploy")["ok"] is True
    code, _, err = watchfloor("secrets", "rotation", "run", "webhook", "--reason", "its old value was never told")
    assert code == 7 and "webhook: failed: " in err and "the old value is wrong" in err
    code, out, _ = watchfloor("secrets", "rotation", "api-key")
    assert code == 0 and asked(it, "GET", "/api/token-check", out.strip())[0] == 200
    assert watchfloor("secrets", "revoke", "nobody")[0] == 3
    code, out, _ = watchfloor("secrets", "rotation", "show")
    assert code == 7 and "chosen by the settings" in out and vault.old["deploy"] not in out
