"""What is believed of how a call ended: its first process's own word, bounded, and of no other shape than it has."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace
from typing import Any

import pytest

from console.sandbox import launcher
from console.sandbox.calls.execution import Ended, Execution

WORD = "the word of this call"


def ended(monkeypatch: pytest.MonkeyPatch, *lines: bytes) -> Ended:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    try:
        os.write(writing, b"\n".join(lines) + b"\n")
        monkeypatch.setattr(launcher, "wait_end", lambda launched, seconds: 137)
        spec: Any = SimpleNamespace()
        return Execution(spec, spec, -1, -1, reading, WORD).ended()
    finally:
        os.close(reading)
        os.close(writing)


def said(**message: object) -> bytes:
    return json.dumps({"token": WORD, **message}).encode()


def test_its_word_is_taken_and_nobody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    told = said(step=0, code=0, signal=0), said(step=1, code=137, signal=9), b'{"token": "x", "refused": "forged"}', b"no json", b"[1]"
    assert ended(monkeypatch, *told) == Ended(137, 9, "", ((0, 0), (1, 137)))


def test_lines_of_another_shape_break_nothing_and_a_reason_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = said(step="x", code=0, signal=0), said(step=0), said(step=[], code={}, signal=None), said(step=1e999, code=0, signal=0)
    found = ended(monkeypatch, *odd, said(refused="r" * 5000), said(step=2, code=1, signal=0))
    assert found.steps == ((2, 1),) and len(found.refused) == 400
