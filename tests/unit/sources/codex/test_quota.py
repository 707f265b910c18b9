"""A subscription's window is shown only where a file says it, and no file can mislead more than that."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from console.sources.codex.quota import TAIL, windows
from console.sources.quota import Window

DAY = Path(".codex/sessions/2026/11/22")


def line(limits: object, at: str = "2026-11-22T08:00:00.000Z") -> str:
    return json.dumps({"timestamp": at, "type": "event_msg", "payload": {"type": "token_count", "info": {}, "rate_limits": limits}}) + "\n"


def rollout(home: Path, name: str, *lines: str, day: Path = DAY, mtime: float = 1000.0) -> Path:
    (home / day).mkdir(parents=True, exist_ok=True)
    path = home / day / f"rollout-{name}.jsonl"
    path.write_text("".join(lines))
    os.utime(path, (mtime, mtime))
    return path


FIVE_HOURS = {"used_percent": 18.0, "window_minutes": 300, "resets_in_seconds": 3600}
WEEK = {"used_percent": 78, "window_minutes": 10080, "resets_at": 1795600000}
AT = 1795334400.0


def test_the_newest_word_holds(tmp_path: Path) -> None:
    rollout(tmp_path, "old", line({"primary": {"used_percent": 99, "window_minutes": 300}}), mtime=500.0)
    rollout(tmp_path, "new", line({"primary": {"used_percent": 1}}), line({"primary": FIVE_HOURS, "secondary": WEEK}), "{half a line")
    assert windows([tmp_path]) == [Window(300, 0.18, AT + 3600, AT), Window(10080, 0.78, 1795600000.0, AT)]


def test_what_says_nothing_is_passed_over_and_where_nobody_says_anything_nothing_is_known(tmp_path: Path) -> None:
    assert windows([tmp_path, tmp_path / "nobody"]) == []
    rollout(tmp_path, "a", line({"primary": None, "secondary": None, "plan_type": None}), mtime=2000.0)
    assert windows([tmp_path]) == []
    rollout(tmp_path, "b", line({"primary": {"used_percent": 7}}))
    assert windows([tmp_path]) == [Window(0, 0.07, None, AT)]


WRONG_SHARES = [float("nan"), -1, True, 1e308, "5", None]


@pytest.mark.parametrize("wrong", [None, 5, "x", [], {"primary": 5}, *({"primary": {"used_percent": x}} for x in WRONG_SHARES)])
def test_what_is_no_share_is_none(tmp_path: Path, wrong: object) -> None:
    rollout(tmp_path, "a", line(wrong))
    assert windows([tmp_path]) == []


def test_links_pipes_and_folders_are_not_read(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text(line({"primary": WEEK}))
    (tmp_path / DAY).mkdir(parents=True)
    (tmp_path / DAY / "rollout-link.jsonl").symlink_to(outside)
    os.mkfifo(tmp_path / DAY / "rollout-pipe.jsonl")
    (tmp_path / DAY / "rollout-folder.jsonl").mkdir()
    assert windows([tmp_path]) == []


def test_only_the_end_of_a_file_is_read(tmp_path: Path) -> None:
    rollout(tmp_path, "a", line({"primary": WEEK}), "x" * (TAIL + 10) + "\n")
    assert windows([tmp_path]) == []
