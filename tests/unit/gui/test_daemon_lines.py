"""Daemons and returns in the window: each line is a fact, and hostile text stays one fact's text."""

from __future__ import annotations

from console.api.agents.daemons import DaemonView
from console.api.ladder import LadderPreview
from console.domain.kill import Daemon, Receipt, Return
from console.gui.pages.kill_switch.rung_words import daemon_words
from console.gui.pages.receipt.outside import daemon_lines, return_lines


def test_a_receipt_names_its_daemons_and_what_ran_again() -> None:
    daemon = Daemon("claude", "the service", 7, 1, "/x", 1, ("s1",), ("s2",), "frozen", "until zero", "claude stop s1")
    back = Return("a1", "s1", 9, 1, 7, "claude", "claude --resume s1", 9.8, "session id", certain=True, killed=True, proven=False, why="")
    receipt = Receipt("k", "i", "a1", "r", "b", 1.0, daemons=(daemon,), returns=(back,))
    assert [line.left for line in daemon_lines(receipt)] == ["the service, pid 7", "until zero", "other sessions: s2", "claude stop s1"]
    assert [line.left for line in return_lines(receipt)][1] == "pid 9 · 10 s after · by session id · NOT confirmed dead"
    assert daemon_lines(Receipt("k", "i", "a1", "r", "b", 1.0)) == []


def test_the_question_before_a_kill_names_them() -> None:
    one = DaemonView(name="the service", pid=7, plan="frozen until zero", other_sessions=["s2"])
    view = LadderPreview(action="kill", reach="agent", words="w", daemons=[one])
    assert daemon_words(view) == ["the service, process 7: frozen until zero; other sessions in it: s2"]
