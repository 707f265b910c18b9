"""The window opens on a page that is named, or that a link names; a link can ask for nothing else."""

from __future__ import annotations

import getpass
from pathlib import Path
from types import SimpleNamespace

import pytest

from console.cli import windows
from console.cli.main import main
from console.cli.stop.secret_input import hidden
from console.gui.pages.registry import PAGES


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What would have become of this process."""
    became: list[tuple[str, ...]] = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(windows, "ensure_supervisor", lambda _: SimpleNamespace(state_dir=Path("/state")))

    def become(*words: str) -> int:
        became.append(words)
        return 0

    monkeypatch.setattr(windows, "become", become)
    return became


@pytest.mark.parametrize("named", ["approvals", "watchfloor://approvals", "watchfloor://approvals/"])
def test_a_page_opens_by_name_and_by_link(opened: list[tuple[str, ...]], named: str) -> None:
    assert main(["open", "--", named]) == 0
    assert opened == [("console.gui", "--state-dir", "/state", "--page", "approvals")]


@pytest.mark.parametrize(
    "link", ["watchfloor://kill/all", "watchfloor://", "watchfloor://approvals?approve=all", "--theme", "x" * 5000, "watchfloor://\x1b[2J"]
)
def test_any_other_link_is_refused(opened: list[tuple[str, ...]], capsys: pytest.CaptureFixture[str], link: str) -> None:
    assert main(["open", "--", link]) == 2
    said = capsys.readouterr().err
    assert "There is no page" in said and "\x1b" not in said and len(said) < 400
    assert not opened


def test_the_command_line_knows_the_pages_of_the_window() -> None:
    assert set(windows.PAGES) == {kind.spec.name for kind in PAGES}


def test_the_daemons_own_options_keep_their_values_behind_them(opened: list[tuple[str, ...]]) -> None:
    assert main(["supervisor", "--remote-bucket", "stop", "--state-dir", "/state", "--remote-fleet", "prod", "--remote-poll-s=1"]) == 0
    assert opened == [
        ("console.supervisor", "serve", "--state-dir", "/state", "--remote-bucket", "stop", "--remote-fleet", "prod", "--remote-poll-s=1")
    ]


def test_a_word_that_looks_like_a_sub_command_of_the_supervisor_starts_none_and_names_what_stops_it(
    opened: list[tuple[str, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["supervisor", "stop", "--state-dir", "/state"]) == 2
    said = capsys.readouterr().err
    assert "takes no word such as 'stop'" in said and "systemctl stop watchfloor.socket" in said and not opened


def test_ctrl_d_at_a_hidden_question_is_an_empty_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(_prompt: str) -> str:
        raise EOFError

    monkeypatch.setattr(getpass, "getpass", ended)
    assert hidden("Passphrase: ") == ""
