"""The audit log for members of Watchfloor's groups: the command line of an ordinary account, which reads no file of the instance."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.api.alerts import WebhookBody
from console.audit.log import AuditLog
from console.audit.reading import AuditReader
from tests.fakes.members import UID, HostInstance

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="accounts and groups are changed: this needs root")
RECORDS = 1203
"""More than one answer of the supervisor holds."""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostInstance]:
    state = tmp_path_factory.mktemp("h") / "state"
    state.mkdir(mode=0o711)
    log = AuditLog(state / "audit.db")
    for number in range(RECORDS):
        log.append("agent-seven", "call", f"=SUM(A{number}) \x1b[2J\u2028\ud800", data={"number": number, "words": "\x00\u202e"})
    log.close()
    with HostInstance(state) as made:
        assert isinstance(made, HostInstance)
        assert made.places.audit_db.stat().st_mode & 0o077 == 0, "an ordinary account cannot read the log"
        yield made


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="wf-auditor-"))
    os.chown(made, UID, -1)
    yield made
    shutil.rmtree(made)


def test_an_auditor_reads_the_newest_records(host: HostInstance) -> None:
    said = host.told("audit", "tail", "-n", "5", "--filter", "=SUM(A1202)", roles=("auditor",))
    assert (said.returncode, said.stderr) == (0, "") and said.stdout.split()[0] == str(RECORDS) and "\x1b" not in said.stdout
    found = json.loads(host.told("audit", "tail", "-n", "1", "--json", roles=("viewer",)).stdout)
    assert found["total"] == found["records"][0]["seq"] >= RECORDS and found["records"][0]["kind"]


def test_an_auditor_follows_the_log(host: HostInstance) -> None:
    command = host.command("audit", "tail", "-n", "1", "--follow", roles=("auditor",))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tail:
        assert tail.stdout is not None
        try:
            before = tail.stdout.readline()
            host.launch("true")
            after = tail.stdout.readline()
        finally:
            tail.kill()
    assert int(before.split()[0]) < int(after.split()[0])


def test_an_auditor_checks_that_the_log_is_whole_and_keeps_an_anchor(host: HostInstance) -> None:
    said = host.told("audit", "verify", roles=("auditor",))
    assert said.returncode == 0 and said.stdout.startswith("log intact: "), said
    anchor = said.stdout.split("--anchor ")[1].strip()
    assert "rollback record" in said.stdout and "what the running supervisor remembers" in said.stdout
    again = host.told("audit", "verify", "--anchor", anchor, "--json", roles=("auditor",))
    assert again.returncode == 0 and "1 anchor" in json.loads(again.stdout)["compared_with"]
    seq = anchor.partition(":")[0]
    wrong = host.told("audit", "verify", "--anchor", f"{seq}:{'0' * 32}", roles=("auditor",))
    assert wrong.returncode == 1 and f"LOG NOT INTACT: record {seq} is not the one that the anchor" in wrong.stdout
    cut = host.told("audit", "verify", "--anchor", f"99999999:{'0' * 32}", roles=("auditor",))
    assert cut.returncode == 1 and "is missing: records were cut" in cut.stdout


def test_a_receipt_that_is_no_file_is_refused_before_anything_is_asked(host: HostInstance, folder: Path) -> None:
    said = host.told("audit", "verify", "--receipt", str(folder), roles=("auditor",))
    assert said.returncode == 2 and "Is a directory" in said.stderr and "KILL.sealed.json" in said.stderr


@pytest.mark.parametrize("fmt", ["jsonl", "csv"])
def test_an_auditor_exports_every_record_as_root_would(host: HostInstance, folder: Path, fmt: str) -> None:
    host.api.set_webhook(WebhookBody(url="http://me:agent-seven@127.0.0.1:9/"))  # a word of the log is a secret from now on
    said = host.told("audit", "export", "all", "--format", fmt, roles=("auditor",), folder=folder)
    assert said.returncode == 0 and "records written to all" in said.stdout, said
    got = (folder / "all").read_bytes()
    AuditReader(host.places.audit_db).export(folder / "roots", fmt)
    lines = got.count(b"\n")
    assert lines > RECORDS and got == b"".join((folder / "roots").read_bytes().splitlines(keepends=True)[:lines])
    assert (folder / "all").stat().st_uid == UID


@pytest.mark.parametrize("role", ["viewer", "operator", "responder"])
def test_who_is_no_auditor_exports_nothing_and_no_file_is_left(host: HostInstance, folder: Path, role: str) -> None:
    said = host.told("audit", "export", "all", roles=(role,), folder=folder)
    assert said.returncode == 4 and "watchfloor-auditor" in said.stderr and not (folder / "all").exists()


def test_an_account_in_no_group_sees_nothing_of_the_hosts_log(host: HostInstance, folder: Path) -> None:
    for words in (("tail",), ("verify",), ("export", "all")):
        said = host.told("audit", *words, roles=(), folder=folder)
        assert said.returncode != 0 and "SUM" not in said.stdout and not (folder / "all").exists()
