"""Words and shapes of paths, results and control levels."""

from __future__ import annotations

from console.api.messages import ReceiptRow
from console.domain.errors import ExitCode

PATHS = {
    "local": ("Local kill", "shield"),
    "engine": ("Docker engine", "box"),
    "remote": ("Remote file", "cloud"),
    "secrets": ("Secrets", "key"),
}
PATH_STATES = {
    "proven": ("Ready", "check", "ok"),
    "in_doubt": ("Not ready", "triangle", "warn"),
    "not_configured": ("Not configured", "ring", "text2"),
    "unavailable": ("Unavailable", "triangle", "warn"),
}
LEVELS = {
    "contained": ("container cgroup, engine", "confirmed dead"),
    "managed": ("own cgroup or namespace", "confirmed dead"),
    "adopted": ("moved to our cgroup", "confirmed dead"),
    "observed": ("left alone, or by pid", "best effort at most"),
    "best_effort": ("signals by pid", "best effort, not confirmed"),
}


def result_words(row: ReceiptRow) -> tuple[str, str, str]:
    """(words, shape, colour) of an earlier kill; a tick needs a verified zero and no step in doubt."""
    if not row.complete:
        return f"{row.short}, not complete", "triangle", "warn"
    if row.exit_code == ExitCode.BEST_EFFORT:
        return row.short, "alert", "warn"
    return row.short, *(("check", "text2") if row.exit_code == ExitCode.DONE else ("triangle", "warn"))
