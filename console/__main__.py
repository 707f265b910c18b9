"""``watchfloor`` and ``python -m console``: hands over to the command line."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Runs the command line and exits with the documented code."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # while modules load, Ctrl-C ends it without a traceback
    if sys.argv[1:2] == ["panic-button"]:
        from console.panic.raising import raise_quickly

        if raise_quickly(sys.argv[2:]):  # before the command line is imported: the window is up by then
            sys.exit(0)
    from console.cli.main import run

    run()


if __name__ == "__main__":
    main()
