"""Printing: a reader that goes away changes nothing."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import console
from console.api.policy.approvals import GrantsView
from console.cli.terminal import out
from console.domain.errors import ConsoleError

ROOT = Path(console.__file__).resolve().parent.parent


def program(body: str, stdout: int) -> subprocess.CompletedProcess[bytes]:
    code = f"from console.cli.terminal import out\n{body}"
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=stdout, stderr=subprocess.PIPE, check=False)


def test_json_is_ascii_and_has_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    out.emit({"name": "\x1b\u202eä", "odd": Path("/x")})
    text = capsys.readouterr().out
    assert text.isascii() and "\x1b" not in text
    assert json.loads(text) == {"schema_version": 1, "name": "\x1b\u202eä", "odd": "/x"}


def test_a_view_is_written_with_one_version_at_its_head(capsys: pytest.CaptureFixture[str]) -> None:
    out.emit_view(GrantsView(grants=[]))
    assert list(json.loads(capsys.readouterr().out).items()) == [("schema_version", 1), ("grants", [])]


def test_an_error_is_harmless_and_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    out.complain(ConsoleError("\x1b" * 100_000, "\u202e"))
    text = capsys.readouterr().err
    assert "\x1b" not in text and "\u202e" not in text and len(text) < 5000


def test_markup_and_emoji_stay_text(capsys: pytest.CaptureFixture[str]) -> None:
    out.show(out.words("[red]x[/red] :smile: 123"))
    assert capsys.readouterr().out == "[red]x[/red] :smile: 123\n"


def test_a_broken_pipe_is_noticed_and_does_not_end_the_verb() -> None:
    read, write = os.pipe()
    os.close(read)
    done = program("out.say('x'); out.say('y'); raise SystemExit(9 if out.gone() else 0)", stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (9, b"")


def test_a_full_disk_behind_stdout_is_told_and_does_not_change_the_exit_code() -> None:
    with open("/dev/full", "wb") as full:
        done = program("out.say('x'); raise SystemExit(7)", stdout=full.fileno())
    assert (done.returncode, done.stderr) == (7, b"not everything was printed: No space left on device\n")


def test_closed_descriptors_are_no_error() -> None:
    done = subprocess.run(
        [
            "sh",
            "-c",
            "exec \"$0\" -c \"from console.cli.terminal import out; out.say('x'); out.note('y'); raise SystemExit(3)\" >&- 2>&-",
            sys.executable,
        ],
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 3


def test_a_stream_that_cannot_say_it_says_it_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, "ascii"))
    out.say("ä└")
    assert raw.getvalue() == b"\\xe4\\u2514\n"


def test_each_line_of_a_stream_is_one_object_with_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    out.emit_line({"seq": 1})
    out.emit_line({"seq": 2, "what": "a\nb"})
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [{"schema_version": 1, "seq": 1}, {"schema_version": 1, "seq": 2, "what": "a\nb"}]


@pytest.mark.parametrize(("is_terminal", "lines"), [(True, 3), (False, 1)])
def test_a_long_line_is_folded_for_a_person_and_whole_for_a_program(
    is_terminal: bool, lines: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(out, "is_terminal", lambda: is_terminal)
    monkeypatch.setenv("COLUMNS", "40")
    out.say_folded("source codex: polling, 0 seen. Looks for codex processes that hold a rollout open below.")
    said = capsys.readouterr().out.splitlines()
    assert len(said) == lines and all(len(line) <= 40 for line in said) == is_terminal


def test_a_refusal_names_the_operator(capsys: pytest.CaptureFixture[str]) -> None:
    out.complain(ConsoleError("It was denied by operator:4000119.", "Ask operator:4000119."))
    assert capsys.readouterr().err == "error: It was denied by uid 4000119.\n  Ask uid 4000119.\n"
