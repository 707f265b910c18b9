"""Words and shapes of paths, results and control levels."""

from __future__ import annotations

from console.api.messages import ReceiptRow

PATHS = {
    "local": ("Local kill", "shield"),
    "engine": ("Docker engine", "box"),
    "remote": ("Remote file", "cloud"),
    "secrets": ("Secrets", "key"),
}
PATH_STATES = {
    "proven": ("Proven", "check", "ok"),
    "in_doubt": ("In doubt", "triangle", "warn"),
    "not_configured": ("Not configured", "ring", "text2"),
    "unavailable": ("Unavailable", "triangle", "warn"),
}
LEVELS = {
    "contained": ("container cgroup, engine", "zero, proven"),
    "managed": ("own cgroup or namespace", "zero, proven"),
    "adopted": ("moved to our cgroup", "zero, proven"),
    "observed": ("left alone, or by pid", "best effort at most"),
    "best_effort": ("signals by pid", "best effort, never proven"),
}


def result_words(row: ReceiptRow) -> tuple[str, str, str]:
    """(words, shape, colour) of an earlier kill; a tick needs a verified zero and no step in doubt."""
    provable = max(row.proven, row.targets - row.best_effort)
    if not row.verified_zero or row.exit_code == 9:
        left = provable - row.proven
        return f"{left} not proven" if left else "not proven", "triangle", "warn"
    words = f"{row.proven} of {provable} proven zero"
    if row.bad_steps:
        return f"{words}; {', '.join(name.replace('_', ' ') for name in row.bad_steps)}", "triangle", "warn"
    if not row.complete:
        return f"{words}; not complete", "triangle", "warn"
    if row.best_effort:
        return f"{words}; {row.best_effort} best effort", "alert", "warn"
    return words, "check", "text2"
