"""What a kill leaves behind as evidence, and the seal on its receipt: against a real supervisor, a real guard and real agents."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.audit.receipt_seal import verify_file
from console.cli.main import main
from console.domain.kill import Receipt, Step, StepName
from console.killswitch.client.guard_client import GuardClient
from console.settings.options import save_options
from tests.fakes.instance import Instance, until
from tests.fakes.verbs import Said


def settled(state_dir: Path, **evidence: Any) -> None:
    """An instance whose witness looks often and says when; ``evidence`` are further options."""
    changes = {f"evidence.{name}": value for name, value in ({"refresh_s": 0.3} | evidence).items()}
    save_options(state_dir / "settings.json", changes)


@pytest.fixture
def it(state_dir: Path) -> Iterator[Instance]:
    settled(state_dir)
    with Instance(state_dir) as instance:
        yield instance


def case_of(it: Instance, kill_id: str) -> Path:
    return it.state_dir / "cases" / kill_id


def part(it: Instance, kill_id: str, name: str) -> Any:
    return json.loads((case_of(it, kill_id) / f"{name}.json").read_text())


def evidence(receipt: Receipt) -> Step:
    return next(s for s in receipt.steps if s.name is StepName.EVIDENCE)


def changed(it: Instance, kill_id: str) -> dict[str, dict[str, Any]]:
    return {f["path"]: f for w in part(it, kill_id, "workspaces")["workspaces"] for f in w["files"]}


def looked_at(it: Instance, agent: str) -> float:
    """When the last finished look at the agent's processes began: on a busy machine they may be many seconds apart."""
    told = it.scrape("/metrics/sessions")[2]
    found = re.search(rf'^agent_processes_looked_at_timestamp{{agent_id="{agent}"}} (.+)$', told, re.MULTILINE)
    return float(found[1]) if found else 0.0


def witnessed(it: Instance, agent: str) -> None:
    """The witness has looked at the agent as it is now."""
    now = time.time()
    until(lambda: looked_at(it, agent) > now, words=f"a look at {agent}")


def killed(it: Instance, agent: str) -> Receipt:
    witnessed(it, agent)
    return it.api.kill(agent, tree=True)


def test_a_kill_leaves_a_case_with_what_the_dead_ran_had_open_and_changed(it: Instance) -> None:
    mark = "m" + os.urandom(6).hex()
    agent = it.python(
        f"import subprocess, socket; subprocess.Popen(['sleep', '297', ], start_new_session=True, env={{}})\n"
        f"kept = open('data/{mark}', 'w'); kept.write('taken'); kept.flush(); s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\n"
        f"print('port', s.getsockname()[1], flush=True); time.sleep(300) # {mark}"
    )
    port = it.says(agent, "port").split()[-1]
    receipt = killed(it, agent)
    step, folder = evidence(receipt), case_of(it, receipt.kill_id)
    assert step.status == "ok", step

    processes = part(it, receipt.kill_id, "snapshot")["agents"][agent]["processes"]
    lines = [" ".join(p["cmdline"]) for p in processes]
    assert any(mark in line for line in lines)
    assert any(line == "sleep 297" for line in lines)
    assert any(f["path"].endswith(f"data/{mark}") for p in processes for f in p["files"])
    assert any(s["kind"] == "tcp listening" and s["local"] == f"127.0.0.1:{port}" for p in processes for s in p["sockets"])
    found = changed(it, receipt.kill_id)[f"data/{mark}"]
    assert (found["size"], found["sha256"]) == (5, hashlib.sha256(b"taken").hexdigest())
    assert part(it, receipt.kill_id, "outputs")["agents"][agent]["tail"] == f"port {port}\n"
    assert {a["agent_id"]: a["target"] for a in part(it, receipt.kill_id, "agents")["agents"]} == {agent: True}

    manifest = (folder / "manifest.json").read_bytes()
    for entry in json.loads(manifest)["files"]:
        assert hashlib.sha256((folder / entry["name"]).read_bytes()).hexdigest() == entry["sha256"]
    assert {e["name"] for e in json.loads(manifest)["files"]} == {p.name for p in folder.iterdir()} - {"manifest.json", "persistence.json"}
    assert step.detail.endswith(f"manifest sha256 {hashlib.sha256(manifest).hexdigest()}")
    assert (it.places.workspaces_dir / it.agent(agent).session / "data" / mark).read_text() == "taken"  # nothing is deleted


def test_hostile_names_and_links_in_a_workspace_lead_nowhere(it: Instance) -> None:
    secret = it.state_dir / "secret"
    secret.write_text("s" * 41)
    agent = it.python(
        f"os.symlink({str(secret)!r}, 'link'); os.symlink('/', 'root'); os.mkfifo('fifo'); open(b'\\xff\\n\\x1b[31m', 'w').close()\n"
        "os.symlink('..', 'data/up'); print('done', flush=True); time.sleep(300)"
    )
    it.says(agent, "done")
    receipt = killed(it, agent)
    assert evidence(receipt).status == "ok"
    found = changed(it, receipt.kill_id)
    assert {path: f["kind"] for path, f in found.items()} == {
        "link": "link", "root": "link", "fifo": "fifo", "\\xff\n\x1b[31m": "file", "data/up": "link",
    }  # fmt: skip
    everything = b"".join(p.read_bytes() for p in case_of(it, receipt.kill_id).iterdir())
    assert hashlib.sha256(b"s" * 41).hexdigest().encode() not in everything
    assert b"\xff" not in everything and b"\x1b" not in everything


def test_a_huge_workspace_is_cut_at_the_bound_and_the_kill_is_not_delayed(state_dir: Path) -> None:
    settled(state_dir, bound_s=0.1, files_max=1_000_000)
    with Instance(state_dir) as it:
        agent = it.python(
            "for n in range(15):\n  os.mkdir(f'data/{n}')\n  for m in range(500): open(f'data/{n}/{m}', 'w').close()\n"
            "print('done', flush=True); time.sleep(300)"
        )
        it.says(agent, "done")
        receipt = killed(it, agent)
        assert receipt.verified_zero
        step = evidence(receipt)
        assert step.status == "ok"
        assert re.search(r"cut at 0\.1 s: [a-z, ]*workspaces", step.detail), step.detail  # on a busy machine others are cut too
        cut = [c["part"] for c in part(it, receipt.kill_id, "manifest")["cut"]]
        assert "workspaces" in cut
        if (case_of(it, receipt.kill_id) / "workspaces.json").exists():  # on a busy machine it may not even be begun
            assert len(changed(it, receipt.kill_id)) < 7_500
        if "snapshot" not in cut:
            assert part(it, receipt.kill_id, "snapshot")["agents"][agent]["processes"]
        zero = next(s for s in receipt.steps if s.name is StepName.ZERO)
        assert zero.ms is not None and step.ms is not None and zero.ms < step.ms


def test_a_press_on_the_guard_alone_leaves_a_case_too(it: Instance) -> None:
    mark = "m" + os.urandom(6).hex()
    agent = it.python(f"print('up', flush=True); time.sleep(300) # {mark}")
    it.says(agent, "up")
    witnessed(it, agent)
    guard = GuardClient(it.places.guard_sock, timeout_s=60)
    kill_id = guard.press("all", "pressed beside the supervisor", "test", timeout_s=90)
    guard.close()
    until(lambda: (r := next((r for r in it.api.kill_switch().receipts if r.kill_id == kill_id), None)) and r.complete)
    assert mark in json.dumps(part(it, kill_id, "snapshot")["agents"][agent]["processes"])


def test_the_final_receipt_is_sealed_and_any_changed_byte_breaks_the_seal(it: Instance) -> None:
    agent = it.launch("sleep", "300")
    receipt = it.api.kill(agent)
    sealed = it.places.receipts_dir / f"{receipt.kill_id}.sealed.json"
    until(sealed.exists)
    verdict = verify_file(sealed)
    assert (verdict.good, verdict.kill_id, verdict.why) == (True, receipt.kill_id, "")
    plain = sealed.with_name(f"{receipt.kill_id}.json")
    until(lambda: json.loads(plain.read_text())["complete"])
    inside = json.loads(sealed.read_text())["receipt"]
    head = inside.pop("audit_head")
    assert inside == json.loads(plain.read_text())
    assert any((r.seq, r.hash) == (head["seq"], head["hash"]) for r in it.api.audit(limit=200).rows), "the record it was sealed behind"
    digest = hashlib.sha256(sealed.read_bytes()).hexdigest()
    rows = until(lambda: [r for r in it.api.audit(limit=200).rows if r.kind == "kill.judged" and digest in r.to_json()])
    assert len(rows) == 1
    whole = sealed.read_bytes()
    for place in range(0, len(whole), 37):
        sealed.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert not verify_file(sealed).good
    sealed.write_bytes(whole)
    it.stop()
    assert verify_file(sealed, it.places.keys_dir / "host-key.pub").good  # with the supervisor down
    it.start()
    again = it.api.kill(it.launch("sleep", "300"))
    second = it.places.receipts_dir / f"{again.kill_id}.sealed.json"
    until(second.exists)
    assert verify_file(second).key_id == verdict.key_id  # the same key after a restart


def audit_verify(capfd: pytest.CaptureFixture[str], it: Instance, *more: str) -> Said:
    capfd.readouterr()
    code = main(["audit", "verify", "--state-dir", str(it.state_dir), *more])
    seen = capfd.readouterr()
    return Said(code, " ".join(seen.out.split()), seen.err)


def put_back(it: Instance, old: Path) -> None:
    """The log, and its checkpoints, as they were: whole in themselves."""
    for name in ("audit.db-wal", "audit.db-shm"):
        it.places.audit_db.with_name(name).unlink(missing_ok=True)
    for name in ("audit.db", "audit.checkpoints"):
        fresh = Path(shutil.copy(old / name, it.state_dir / f"{name}.new"))
        fresh.replace(it.state_dir / name)


def test_a_log_put_back_to_an_older_copy_is_betrayed_by_the_supervisor_and_by_a_receipt(
    it: Instance, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    it.stop()  # with a last checkpoint
    for name in ("audit.db", "audit.checkpoints"):
        shutil.copy(it.state_dir / name, tmp_path)
    it.start()
    receipt = it.api.kill(it.launch("sleep", "300"))
    sealed = it.places.receipts_dir / f"{receipt.kill_id}.sealed.json"
    until(sealed.exists)
    kept = Path(shutil.copy(sealed, tmp_path))
    until(lambda: [r for r in it.api.audit(limit=200).rows if r.kind == "kill.judged" and "seal_sha256" in r.to_json()])
    good = audit_verify(capfd, it, "--receipt", str(kept))
    assert good.code == 0 and "the running supervisor remembers" in good.out and "2 sealed receipts" in good.out, good
    put_back(it, tmp_path)
    running = audit_verify(capfd, it, "--json")
    assert running.code == 1 and "the running writer wrote them" in running.json["why"], running
    it.stop(signal.SIGKILL)
    put_back(it, tmp_path)
    alone = audit_verify(capfd, it)
    assert alone.code == 1 and f"no record of the receipt of kill {receipt.kill_id}" in alone.out, alone
    sealed.unlink()  # whoever rewrites the log deletes that too: the ledger and the copy elsewhere stay
    by_ledger = audit_verify(capfd, it)
    assert by_ledger.code == 1 and "which the ledger names, is missing" in by_ledger.out, by_ledger
    with contextlib.closing(sqlite3.connect(it.places.ledger_db)) as ledger:
        ledger.execute("DELETE FROM kv WHERE key = 'audit.head'")
        ledger.commit()
    assert audit_verify(capfd, it).code == 0
    assert audit_verify(capfd, it, "--receipt", str(kept)).code == 1


def test_an_agent_sees_neither_cases_nor_the_host_key(it: Instance) -> None:
    it.api.kill(it.launch("sleep", "300"))
    assert (it.state_dir / "cases").exists() and (it.places.keys_dir / "host-key.pem").exists()
    paths = [str(it.state_dir / "cases"), str(it.places.keys_dir / "host-key.pem"), str(it.places.receipts_dir)]
    agent = it.python(f"print('seen', [p for p in {paths!r} if os.path.exists(p)], flush=True)")
    assert "seen []" in it.says(agent, "seen")
