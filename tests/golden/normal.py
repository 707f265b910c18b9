"""Answers without what differs between two runs: words lose ids, paths, times and numbers; values keep their keys and types."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

STABLE = frozenset(
    {
        *("schema_version", "exit_code", "killed", "mode", "action", "control_level", "network_mode", "network_enforced", "verified_zero"),
        *("complete", "scope", "verdict", "proven", "targets", "best_effort", "passphrase", "whole", "latched", "known", "alive", "rung"),
        *("reach", "outcome", "frozen", "thawed", "failed", "dry_run", "done", "ok", "kind", "version"),
    }
)
"""Keys whose values are the same in each run."""
TIMED: dict[str, Any] = {"only_seen": "int | null", "excluded": "what was left alone"}
"""Keys whose values depend on what the guard has heard of other programs at that moment."""
AGAIN = frozenset({"cgroup.kill", "descendants", "pidfd SIGKILL to members that cgroup.kill does not end", "freezer of cgroup v1"})
"""What a kill of all writes for an agent only when the first signal has not ended it at once, as on a busy machine."""
ALIKE: dict[tuple[str, Any], Any] = {("exit_code", 8): 0, ("exit_code", 7): 0, ("verdict", "best_effort"): "ok"}
"""A kill whose connections or later steps were not done in time, as on a busy machine, is the same as one whose were: receipts of each
code are golden files of their own."""
_WORDS = (
    (re.compile(r"\d{8}-\d{6}-[0-9a-f]{8}"), "<kill>"),
    (re.compile(r"\b(a|r|q|ctx-a|e|p)-[0-9a-f]{8,16}\b"), r"<\1>"),
    (re.compile(r"(?<![\w.<])/(?:[\w.~+@:-]+/)*[\w.~+@:-]+"), "<path>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z|\+\d\d:\d\d)?"), "<time>"),
    (re.compile(r"\b(?=[a-f]*\d)[0-9a-f]{7,64}\b"), "<hex>"),
    (re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w])"), "<n>"),
    (re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?=(?:ms|s|B|KB|MB|GB)\b)"), "<n>"),
)


def words(text: str) -> str:
    """A sentence that is the same in each run."""
    for pattern, put in _WORDS:
        text = pattern.sub(put, text)
    return text


def shape(value: Any, key: str = "") -> Any:
    """Keys, types, and the values of STABLE keys; a list is the set of the shapes in it."""
    if key in TIMED:
        return TIMED[key]
    if key == "writes" and "cgroup.kill on agents" in value:
        value = {k: v for k, v in value.items() if k not in AGAIN}
    if isinstance(value, dict):
        return {words(k): shape(v, k) for k, v in sorted(value.items())}
    if isinstance(value, list):
        return merged([shape(one, key) for one in value])
    if value is None:
        return "null"
    value = ALIKE.get((key, value), value) if isinstance(value, int | str) else value
    if key in STABLE and isinstance(value, str):
        return f"= {words(value)}"
    if key in STABLE:
        return f"= {json.dumps(value)}"
    return type(value).__name__


def merged(shapes: Iterable[Any]) -> list[Any]:
    """Objects of one list as one object with all their keys, other shapes once each."""
    one: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for given in shapes:
        if isinstance(given, dict):
            for key, value in given.items():
                one[key] = either(one[key], value) if key in one else value
        else:
            found[json.dumps(given, sort_keys=True)] = given
    rows = [found[name] for name in sorted(found)]
    return [dict(sorted(one.items())), *rows] if one else rows


def either(left: Any, right: Any) -> Any:
    """What stands for both."""
    if left == right:
        return left
    if isinstance(left, dict) and isinstance(right, dict):
        return merged([left, right])[0] if left or right else {}
    if isinstance(left, list) and isinstance(right, list):
        return merged([*left, *right])
    parts = {p for side in (left, right) for p in (side.split(" | ") if isinstance(side, str) else [json.dumps(side, sort_keys=True)])}
    return " | ".join(sorted(parts))


def text_of(value: Any) -> str:
    """A golden file's text: sorted, indented, so that a difference is a few lines."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=True) + "\n"
