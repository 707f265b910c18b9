"""Whether Codex will run our hook: it skips one that its user has not trusted, in silence. Trust lies in its ``config.toml``, by a hash."""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Any

from console.sources.hook_settings import EVENT, place_of

CONFIG_MAX = 4 * 1024 * 1024
KNOWN = "0.169."
"""The versions whose hash is known here; another may take another one, and then skips the hook."""


def trusted_hash(group: dict[str, Any], hook: dict[str, Any]) -> str:
    """What Codex 0.169 takes the hash of: the hook as it normalizes it, by the event's own name."""
    handler = {"type": "command", "command": hook["command"], "timeout": hook["timeout"], "async": False}
    said = {"event_name": "pre_tool_use", "matcher": group.get("matcher"), "hooks": [handler]}
    return "sha256:" + hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()).hexdigest()


def key_of(file: Path, group: int, hook: int) -> str:
    """Codex's name of one hook of ``hooks.json``."""
    return f"{file}:pre_tool_use:{group}:{hook}"


def why_skipped(settings: dict[str, Any], file: Path) -> str:
    """Why Codex would skip our hook in these settings of ``file``; empty: it is trusted as it stands. In doubt it is not."""
    at = place_of(settings, str(file))
    if at is None:
        return "it is not installed"
    group = settings["hooks"][EVENT][at[0]]
    try:
        wanted = trusted_hash(group, group["hooks"][at[1]])
        with (file.parent / "config.toml").open("rb") as opened:
            found = tomllib.loads(opened.read(CONFIG_MAX).decode())
        if found.get("features", {}).get("hooks") is False:
            return "its configuration switches hooks off (features.hooks)"
        state = found.get("hooks", {}).get("state", {}).get(key_of(file, *at), {})
        if state.get("enabled") is False:
            return "its user has switched it off"
        return (
            "" if state.get("trusted_hash") == wanted else "its user has not trusted it (as it is now): start codex, and approve the hook"
        )
    except FileNotFoundError:
        return "its user has not trusted it: start codex, and approve the hook"
    except (OSError, ValueError, AttributeError, KeyError, TypeError, RecursionError) as error:
        return f"its configuration cannot be read: {error}"[:300]
