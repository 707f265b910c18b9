"""Histories as the real program wrote them, and as nobody should."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from console.sources.aider.history import FILE, ChatHistories, project_of, sums

REAL = Path(__file__).parents[3] / "data" / "aider" / "chat.history.md"
"""Of 0.86.2 from PyPI, driven against a model on loopback: a priced answer, a streamed one, one of a model that it has no price for."""
HEAD = "# aider chat started at 2026-11-25 10:00:00\n\n"


def test_each_session_of_the_real_program() -> None:
    found = sums(REAL.read_text())
    assert list(found) == ["20261125-224125", "20261125-224136", "20261125-224146"]
    assert [(s.tokens, s.cost_usd, s.answers, s.unpriced, s.model) for s in found.values()] == [
        (2978, 0.01, 1, 0, "openai/gpt-4o"),
        (2403, 0.006, 1, 0, "openai/gpt-4o"),
        (598, 0.0, 1, 1, "openai/local-model"),
    ]


def test_a_sessions_cost_is_the_largest_sum_and_tokens_add_up() -> None:
    text = HEAD + "> Tokens: 1.5k sent, 20 received. Cost: $0.01 message, $0.01 session.  \n"
    text += "> Tokens: 12k sent, 1.0k cache write, 2.0k cache hit, 500 received.\nCost: $0.20 message, $0.21 session.\n"
    text += "> Tokens: 5 sent, 5 received. Cost: $0.00 message, $0.00 session.  \n"
    (one,) = sums(text).values()
    assert (one.tokens, one.cost_usd, one.answers, one.unpriced) == (1520 + 15_500 + 10, 0.21, 3, 0)


@pytest.mark.parametrize(
    "line",
    [
        "> Tokens: 99999999999999 sent, 1 received.",
        "Tokens: 1 sent, 1 received.",
        "> Tokens: -1 sent, 1 received.",
        "> Tokens: NaN sent, 1 received.",
        "# aider chat started at 2026-99-99 10:00:00 and more",
        "\0\x1b[31m" * 1000,
    ],
)
def test_what_is_no_line_of_its_own_counts_nothing(line: str) -> None:
    (one,) = sums(f"before\n{HEAD}{line}\n").values()
    assert (one.tokens, one.answers) == (0, 0)
    assert sums(line) == {} and sums("# aider chat started at 2026-99-99 10:00:00\n").popitem()[1].last_at == 0.0


def test_the_history_of_the_project_is_found_and_what_is_not_the_accounts_own_is_not(tmp_path: Path) -> None:
    uid = os.geteuid()
    below = tmp_path / "proj" / "src" / "deep"
    below.mkdir(parents=True)
    (tmp_path / "proj" / ".git").mkdir()
    file = Path(shutil.copy(REAL, tmp_path / "proj" / FILE))
    histories = ChatHistories()
    found = list(histories.sessions(tmp_path / "home", str(below), uid))
    assert [one.session for one in found] == list(sums(REAL.read_text())) and project_of(below) == tmp_path / "proj"
    assert histories.spent(uid, "20261125-224136")[""].cost_usd == 0.006 and histories.spent(uid, "other") == {}
    with file.open("a") as more:
        more.write("> Tokens: 5 sent, 5 received. Cost: $0.50 message, $0.75 session.  \n")
    assert histories.spent(uid, "20261125-224146")[""].cost_usd == 0.75
    assert list(ChatHistories().sessions(tmp_path, str(below), uid + 1)) == []
    file.unlink()
    file.symlink_to(REAL)
    assert list(ChatHistories().sessions(tmp_path, str(below), uid)) == [] and histories.spent(uid, "20261125-224146") == {}
    file.unlink()
    os.mkfifo(file)
    assert list(ChatHistories().sessions(tmp_path, str(below), uid)) == []
