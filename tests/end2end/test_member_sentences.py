"""What a member of the roles' groups sees: no file of the host's instance can be read, and its supervisor is asked instead."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from console.api.records import RECEIPT_MAX, VerifyBody
from console.cli.main import main
from console.domain.errors import ExitCode, UsageProblem
from console.settings import places as places_module
from tests.fakes.instance import Instance, until
from tests.fakes.standing import end_all
from tests.fakes.verbs import Said

Member = Callable[..., Said]


@pytest.fixture
def calm(standing: Instance) -> Iterator[Instance]:
    """The standing instance, with nothing running before and after."""
    yield standing
    end_all(standing)


@pytest.fixture
def member(calm: Instance, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Member:
    """``member("audit", "verify")``: the verb as an account that is a member, on the standing instance as the host's."""
    monkeypatch.setattr(places_module, "is_member", lambda: True)
    monkeypatch.setattr(places_module, "HOSTS_STATE", calm.places.state_dir)
    monkeypatch.setattr(places_module, "FOLDER", calm.places.run_dir)
    monkeypatch.setenv("WATCHFLOOR_STATE_DIR", str(calm.places.state_dir))

    def call(*argv: str) -> Said:
        capfd.readouterr()
        code = main(list(argv))
        seen = capfd.readouterr()
        return Said(code, seen.out, seen.err)

    return call


@pytest.fixture
def kept(calm: Instance, tmp_path: Path) -> Path:
    """A sealed receipt, copied to where nothing of the host's lies beside it."""
    kill_id = calm.api.kill(calm.launch("sleep", "300")).kill_id
    sealed = calm.places.receipts_dir / f"{kill_id}.sealed.json"
    until(sealed.exists)
    until(lambda: calm.api.verify_audit().whole)
    copy = tmp_path / "kept" / sealed.name
    copy.parent.mkdir()
    copy.write_bytes(sealed.read_bytes())
    return copy


def test_a_receipt_kept_elsewhere_is_compared_by_the_supervisor(member: Member, calm: Instance, kept: Path) -> None:
    said = member("audit", "verify", "--receipt", str(kept), "--json")
    own = len(list(calm.places.receipts_dir.glob("*.sealed.json")))
    assert said.code == ExitCode.DONE, said
    assert f"{own + 1} sealed receipts" in json.loads(said.out)["compared_with"]


def test_a_changed_receipt_is_not_green_and_the_hosts_own_verdict_stays(member: Member, calm: Instance, kept: Path) -> None:
    good = kept.read_bytes()
    for bad in (good.replace(b'"complete":true', b'"complete":false'), b"\xff" + good, b"{}", good + b"\n", b""):
        assert bad != good
        kept.write_bytes(bad)
        said = member("audit", "verify", "--receipt", str(kept))
        assert said.code == ExitCode.FAILURE and "not what this host signed" in said.out.replace("\n", " "), said
        assert not calm.api.verify_audit(VerifyBody(receipt=bad.decode(errors="replace"), name=kept.name)).whole
    # What one member brings along says nothing to the others.
    assert calm.api.status().audit_whole is not False
    assert calm.api.verify_audit().whole


def test_the_first_receipt_that_is_wrong_decides_wherever_it_stands(member: Member, kept: Path) -> None:
    wrong = kept.with_name("20000101-000000-00000000.sealed.json")
    wrong.write_bytes(kept.read_bytes())
    for files in ((kept, wrong), (wrong, kept)):
        words = [word for file in files for word in ("--receipt", str(file))]
        assert member("audit", "verify", *words).code == ExitCode.FAILURE


def test_an_anchor_is_compared_by_the_supervisor(member: Member) -> None:
    assert member("audit", "verify", "--anchor", f"1:{'0' * 32}").code == ExitCode.FAILURE
    head = json.loads(member("audit", "verify", "--json").out)["anchor"]
    assert member("audit", "verify", "--anchor", head).code == ExitCode.DONE


def test_a_file_that_cannot_be_sent_is_named(member: Member, tmp_path: Path) -> None:
    large = tmp_path / "large.sealed.json"
    large.write_bytes(b" " * (RECEIPT_MAX + 1))
    for file, words in ((large, "is too large"), (Path("/dev/null"), "is not a plain file"), (tmp_path, "cannot be read")):
        said = member("audit", "verify", "--receipt", str(file))
        assert said.code == UsageProblem.exit_code and words in said.err.replace("\n", " "), said


def test_a_receipt_without_a_key_beside_it_is_not_called_bad(member: Member, kept: Path) -> None:
    said = member("receipt", "verify", str(kept))
    assert said.code == ExitCode.NOT_FOUND and "NOT GOOD" not in said.out and "--public-key" in said.err, said


def test_settings_and_sequences_are_those_of_the_supervisor(member: Member, calm: Instance) -> None:
    said = json.loads(member("config", "show", "heartbeat_s", "--origin", "--json").out)
    [row] = [row for row in calm.api.settings().rows if row.key == "heartbeat_s"]
    assert said["settings"] == {"heartbeat_s": row.value} and said["origins"]["heartbeat_s"]["layer"] == row.layer
    seen = json.loads(member("policy", "sequences", "--json").out)
    assert [one["name"] for one in seen["patterns"]] == [one.name for one in calm.api.sequences().patterns] != []
    assert seen["patterns"][0]["name"] in member("policy", "sequences").out


@pytest.mark.parametrize(
    "verb",
    ["logs", "cost", "secrets keys show", "remote watch", "remote release --reason x", "supervisor", "install-hook claude-code --yes"],
)
def test_what_needs_roots_files_is_refused_with_the_command_that_root_runs(member: Member, verb: str) -> None:
    said = member(*verb.split())
    words = said.err.replace("\n", " ")
    assert said.code == ExitCode.DENIED and "Only root may do this on the host's instance." in words, said
    assert f"sudo watchfloor {verb.split()[0]}" in words
