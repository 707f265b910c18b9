"""What verbs without a daemon say: the same form as everywhere, and nothing hostile reaches a terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from console.domain.errors import NotFound, UsageProblem
from console.supervisor.verbs import signing
from console.supervisor.verbs.oneshot import oneshot
from console.supervisor.verbs.printing import complain


def test_an_error_has_its_words_and_with_json_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    complain(NotFound("There is no \x1b[31mkey.", "Make one."), ["show", "--json"])
    said = capsys.readouterr()
    assert said.err == "error: There is no \\x1b[31mkey.\n  Make one.\n"
    assert json.loads(said.out) == {
        "schema_version": 1,
        "error": "There is no \x1b[31mkey.",
        "remedy": "Make one.",
        "exit_code": 3,
    }
    complain(UsageProblem("No."), ["show"])
    assert capsys.readouterr() == ("", "error: No.\n")


def test_a_reader_that_goes_away_is_no_error() -> None:
    lines = ["import argparse", "from console.supervisor.verbs.printing import show"]
    lines += ["show(argparse.Namespace(json=False), {}, ['x'])", "raise SystemExit(8)"]
    theirs, ours = os.pipe()
    os.close(theirs)
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], stdout=ours, stderr=subprocess.PIPE, timeout=120, check=False)
    os.close(ours)
    assert (done.returncode, done.stderr) == (8, b"")


@pytest.mark.parametrize(
    "words",
    (["keys", "show"], ["keys", "rotate"], ["release", "--review"], ["tools", "check", "s1"], ["watch", "--once"], ["cost"]),
    ids=" ".join,
)
def test_a_folder_whose_name_was_mistyped_is_not_found_and_not_made(tmp_path: Path, words: list[str]) -> None:
    with pytest.raises(NotFound):
        oneshot(words[0], [*words[1:], "--state-dir", str(tmp_path / "mistyped")])
    assert not list(tmp_path.iterdir())


def test_keys_may_be_the_first_of_an_instance(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signing, "PATIENCE_S", 0.0)
    assert oneshot("keys", ["init", "--json", "--state-dir", str(tmp_path / "new")]) == 0
    assert json.loads(capsys.readouterr().out)["quorum"] == 1 and (tmp_path / "new" / "instance.json").is_file()


def test_as_a_program_of_its_own_it_ends_with_the_documented_code(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "console.supervisor", "oneshot", "keys", "show", "--json", "--state-dir", str(tmp_path / "no")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 3 and json.loads(done.stdout)["exit_code"] == 3 and done.stderr.startswith("error: There is no instance")
