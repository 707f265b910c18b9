"""What must hold after every fault, whatever broke: one oracle for the whole fault suite. It looks at files and at the kernel."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

from console.audit.verify import verify_file
from console.domain.errors import ExitCode
from console.domain.kill import Outcome, Receipt, receipt_from_json
from console.domain.network import NetworkMode, Sensitivity, higher, stricter_mode
from console.domain.verdict import verdict
from console.killswitch.kernel.processes import is_alive
from console.killswitch.store.latch import Latch
from console.ledger.store import Ledger
from console.services.stop.self_test import BY as TEST
from console.settings.places import Places

Ratchet = Mapping[str, tuple[Sensitivity, NetworkMode]]


def check_invariants(places: Places, *, killed: bool, ratchet: Ratchet | None = None) -> None:
    """Latch as it must be, ratchet never lower, no action without a prior record, whole chain, no survivor, honest receipts."""
    assert latched(places) == killed, f"latched: {latched(places)}, must be {killed}"
    alive = living(places)
    if killed:
        assert not alive, f"survivors of a kill: {alive}"
        assert not populated(places), "the agents' cgroup is populated"
    if places.audit_db.exists():
        log = verify_file(places.audit_db)
        assert log.whole, f"the audit chain is broken: {log}"
    _check_ratchet(places, ratchet or {})
    _check_records(places)
    for receipt in receipts(places):
        found = verdict(receipt)
        assert found.verified_zero == receipt.verified_zero, receipt
        if found.exit_code is ExitCode.DONE:  # an incomplete one has later steps that are open, and its proof all the same
            assert receipt.verified_zero and not receipt.survivors, receipt
            assert {t.outcome for t in receipt.targets} <= {Outcome.PROVEN_ZERO}, receipt
            left = set(alive.values()) & {t.agent_id for t in receipt.targets}
            assert not left, f"a green receipt over survivors: {left}"


def latched(places: Places) -> bool:
    """As the next guard would read it."""
    latch = Latch(places.guard_dir, None, places.run_dir)
    latch.load()
    return latch.state.latched


def living(places: Places) -> dict[int, str]:
    """Pid and agent of every process that carries this instance's marks."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            variables = dict(v.partition(b"=")[::2] for v in (entry / "environ").read_bytes().split(b"\0"))
            own = variables.get(b"WATCHFLOOR_INSTANCE") == places.instance_id.encode()
            name = variables.get(b"WATCHFLOOR_AGENT_ID", b"").decode()
            # A test of the kill switch lets a process of its own, no agent's, lie outside its leaf until the second look.
            if own and name and not name.startswith(f"{TEST}-") and is_alive(int(entry.name)):
                found[int(entry.name)] = name
    return found


def populated(places: Places) -> bool:
    """Whether any process is in a leaf of this instance, in any hierarchy."""
    for mount in (Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").iterdir()):
        tree = mount / f"watchfloor-{places.instance_id}"
        if not tree.is_dir():
            continue
        for folder, _, _ in os.walk(tree):
            if "/control" in folder or "/relays" in folder:
                continue
            with contextlib.suppress(OSError):
                if any(is_alive(int(pid)) for pid in (Path(folder) / "cgroup.procs").read_text().split()):
                    return True
    return False


def receipts(places: Places) -> Iterator[Receipt]:
    """Every receipt on disk; one that does not parse fails."""
    for folder in (places.receipts_dir, places.guard_dir / "receipts"):
        for path in sorted(folder.glob("*.json")):
            if not path.name.endswith(".sealed.json") and not path.name.startswith("."):
                with contextlib.suppress(FileNotFoundError):  # a self-test that was proven takes its own away
                    yield receipt_from_json(json.loads(path.read_text()))


def audited(places: Places) -> list[tuple[str, str, str, str]]:
    """(kind, verdict, agent, data) of every record, oldest first."""
    with contextlib.closing(sqlite3.connect(f"file:{places.audit_db}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT kind, verdict, agent_id, data FROM records ORDER BY seq").fetchall()
    return [(_text(a), _text(b), _text(c), _text(d)) for a, b, c, d in rows]


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _check_ratchet(places: Places, ratchet: Ratchet) -> None:
    if not ratchet:
        return
    ledger = Ledger(places.ledger_db)
    try:
        for context, (level, mode) in ratchet.items():
            assert higher(ledger.level(context), level) is ledger.level(context), f"{context}: {ledger.level(context)}, was {level}"
            assert stricter_mode(ledger.mode(context), mode) is ledger.mode(context), f"{context}: {ledger.mode(context)}, was {mode}"
    finally:
        ledger.close()


def _check_records(places: Places) -> None:
    """Whoever ran has a launch on record; whatever was allowed has its rollback record."""
    rows = audited(places) if places.audit_db.exists() else []
    launched = {agent for kind, verdict, agent, _ in rows if kind == "launch" and verdict == "allow"}
    ran = {path.stem for path in places.output_dir.glob("*.log") if path.stat().st_size}
    if not list(places.state_dir.glob("audit-set-aside-*")):  # then the record is in there
        assert ran <= launched, f"ran without a record: {ran - launched}"
    allowed = {
        json.loads(data)["rollback_id"]
        for kind, verdict, _, data in rows
        if kind == "permission" and verdict == "allow" and "rollback_id" in data
    }
    if allowed:
        with contextlib.closing(sqlite3.connect(f"file:{places.rollback_dir / 'records.db'}?mode=ro", uri=True)) as connection:
            kept = {row[0] for row in connection.execute("SELECT record_id FROM records")}
        assert allowed <= kept, f"allowed without a snapshot: {allowed - kept}"
