"""Threads that read a kind of message for the first time at the same moment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

KINDS = 150
_TEXTS = "\n".join(f"    text_{n}: Annotated[str, Meta(max_length=10)] = ''" for n in range(20))
_HEAD = """
from __future__ import annotations
from typing import Annotated
from msgspec import Meta
from console.domain.message import Message
"""
_KIND = f"""
class Inner{{n}}(Message, kw_only=True):
{_TEXTS}

class Outer{{n}}(Message, kw_only=True):
    many: list[Inner{{n}}] = []
    one: Inner{{n}} | None = None
{_TEXTS}
"""
_RACE = """
import sys, threading
import kinds
sys.setswitchinterval(1e-6)
inner = {f"text_{n}": "x" for n in range(20)}
found = []
for n in range(KINDS):
    kind, together = getattr(kinds, f"Outer{n}"), threading.Barrier(4)
    def read():
        together.wait()
        found.append(kind.read(inner | {"many": [inner], "one": inner}).many[0].text_19)
    threads = [threading.Thread(target=read) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
assert found == ["x"] * KINDS * 4, len(found)
"""
"""In a process of its own: a crash would take the tests with it."""


def test_a_kind_that_several_threads_read_first_is_read_by_each(tmp_path: Path) -> None:
    (tmp_path / "kinds.py").write_text(_HEAD + "".join(_KIND.format(n=n) for n in range(KINDS)))
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nKINDS = {KINDS}\n{_RACE}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-500:]
