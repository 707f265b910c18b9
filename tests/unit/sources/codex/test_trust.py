"""Codex skips what its user has not trusted: whether it would skip our hook, by its own files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from console.sources.codex.trust import key_of, trusted_hash, why_skipped
from console.sources.hook_settings import HookCommand, with_hook

COMMAND = HookCommand("/usr/bin/python3", Path("/s/hooks/watchfloor-hook.py"), "codex", Path("/s/run/hooks.sock"), 610)


def placed(folder: Path, config: str | None) -> tuple[dict[str, Any], Path]:
    """Our hook as it is installed, and Codex's own configuration; HASH and KEY stand for the right ones."""
    file = folder / "hooks.json"
    settings = with_hook({}, COMMAND, "f")
    group = settings["hooks"]["PreToolUse"][0]
    if config is not None:
        words = config.replace("HASH", trusted_hash(group, group["hooks"][0])).replace("KEY", json.dumps(key_of(file, 0, 0)))
        (folder / "config.toml").write_text(words)
    return settings, file


def test_the_hash_is_codexs_own() -> None:
    # What codex-cli 0.169.0 itself said (app-server, hooks/list) of this hook.
    group = {"matcher": "*", "hooks": [{"type": "command", "command": "/bin/true || exit 2", "timeout": 60}]}
    assert trusted_hash(group, group["hooks"][0]) == "sha256:867434c17a01038884cd6db12b0b124d58dd6c29d2c034aedaec106a647c6724"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ('[hooks.state.KEY]\ntrusted_hash = "HASH"', ""),
        (None, "has not trusted"),
        ("", "has not trusted"),
        ('[hooks.state.KEY]\ntrusted_hash = "sha256:0"', "as it is now"),
        ('[hooks.state.KEY]\ntrusted_hash = "HASH"\nenabled = false', "switched it off"),
        ('[features]\nhooks = false\n[hooks.state.KEY]\ntrusted_hash = "HASH"', "switches hooks off"),
        ("hooks = 3", "cannot be read"),
        ("[[[", "cannot be read"),
    ],
)
def test_what_is_not_surely_trusted_is_skipped(tmp_path: Path, config: str | None, why: str) -> None:
    found = why_skipped(*placed(tmp_path, config))
    assert why in found and bool(found) == bool(why)


def test_what_is_not_there_is_not_installed(tmp_path: Path) -> None:
    assert why_skipped({}, tmp_path / "hooks.json") == "it is not installed"
