"""The second process: asked for files, it answers what is new in each."""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from console.sources.claude_code.transcripts import TRANSCRIPTS
from console.sources.kinds import TRANSCRIPTS as KINDS
from console.sources.spend import transcript_files
from console.sources.spend.transcript_process import LENGTH, Asked, Reply, answer

ROOT = Path(__file__).parents[4]


def line(answer_id: str) -> bytes:
    message = {"id": answer_id, "model": "claude-sonnet-4-5", "usage": {"output_tokens": 1}}
    return json.dumps({"type": "assistant", "message": message}).encode() + b"\n"


def told(frames: bytes) -> list[Reply]:
    stream, found = io.BytesIO(frames), []
    while head := stream.read(LENGTH.size):
        found.append(msgspec.msgpack.decode(stream.read(*LENGTH.unpack(head)), type=Reply))
    return found


def test_a_file_of_many_answers_is_told_in_parts_and_how_far_it_was_read_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript_files, "ANSWERS_MAX", 10)
    monkeypatch.setattr(transcript_files, "BLOCK", 4096)
    file = tmp_path / "s.jsonl"
    file.write_bytes(b"".join(line(f"m{n}") for n in range(105)))
    out = io.BytesIO()
    answer(Asked(7, "claude_code", os.fsencode(file), ours=True, before=None), TRANSCRIPTS, out.write)
    replies = told(out.getvalue())
    assert len(replies) > 2 and [one.is_last for one in replies] == [False] * (len(replies) - 1) + [True]
    assert {one.number for one in replies} == {7} and all(one.place is None for one in replies[:-1])
    assert sorted(a.answer_id.partition(" ")[0] for one in replies for a in one.answers) == sorted(f"m{n}" for n in range(105))
    assert all(a.ours and a.uid == os.getuid() for one in replies for a in one.answers)
    assert replies[-1].place is not None and replies[-1].place.offset == file.stat().st_size
    assert sum(one.found.bytes for one in replies) == file.stat().st_size


def test_it_answers_until_nobody_asks_and_brings_little_along(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_bytes(line("a"))
    asked = [
        msgspec.msgpack.encode(Asked(n, "claude_code", os.fsencode(path), False, None)) for n, path in enumerate((str(file), "/nowhere"))
    ]
    program = f"""
import sys; sys.path.insert(0, {str(ROOT)!r})
from console.sources.spend.transcript_process import main
import pickle; main(pickle.loads(bytes.fromhex({pickle.dumps(KINDS).hex()!r})))
heavy = {{"console.domain.agent", "sqlite3", "asyncio", "pydantic", "genai_prices", "subprocess", "watchfiles"}} & set(sys.modules)
sys.exit(", ".join(heavy) or 0)
"""
    frames = b"".join(LENGTH.pack(len(one)) + one for one in asked)
    done = subprocess.run([sys.executable, "-I", "-c", program], input=frames, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    first, second = told(done.stdout)
    assert (
        [a.answer_id.partition(" ")[0] for a in first.answers] == ["a"]
        and second.place is None
        and "No such file" in second.found.troubles[0]
    )
