"""The command line's door: the only place in it where errors become words and exit codes."""

from __future__ import annotations


def run() -> None:
    """Runs the verb named in sys.argv."""
    raise SystemExit(2)
