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
    "unavailable": ("Not on this host", "ring", "text2"),
}
LEVELS = {
    "contained": ("cgroup of its sandbox", "confirmed dead"),
    "managed": ("cgroup or namespace", "confirmed dead"),
    "adopted": ("moved to our cgroup", "confirmed dead"),
    "observed": ("signals by pid", "best effort at most"),
    "best_effort": ("signals by pid", "best effort, not confirmed"),
}


def level_words(level: str, agents: int, left_alone: int) -> tuple[str, str]:
    """(how, promise) of a panic for the agents of one control level, of which some are left alone."""
    how, promise = LEVELS.get(level, ("not known", "not known"))
    if not left_alone:
        return how, promise
    return ("left alone", "not stopped") if left_alone >= agents else (f"{left_alone} left alone", f"others: {promise}")


def result_words(row: ReceiptRow) -> tuple[str, str, str]:
    """(words, shape, colour) of an earlier kill; a tick needs a verified zero and no step in doubt."""
    if not row.complete:
        return f"{row.short}, not complete", "triangle", "warn"
    if row.exit_code == ExitCode.BEST_EFFORT:
        return row.short, "alert", "warn"
    return row.short, *(("check", "text2") if row.exit_code == ExitCode.DONE else ("triangle", "warn"))
