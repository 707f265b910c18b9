"""``python -m console.gui [--state-dir D] [--page P] [--theme dark|light|system]``."""

from __future__ import annotations

import argparse
import sys

from console.domain.errors import ConsoleError
from console.gui import app
from console.gui.pages.registry import PAGES
from console.panic.display import print_error, until_interrupted


def main(arguments: list[str] | None = None) -> int:
    """Opens the console; 1 when it cannot, with why and what to do on stderr."""
    parser = argparse.ArgumentParser(prog="watchfloor", description="Open the console.")
    parser.add_argument("--state-dir", default=None)
    parser.add_argument(
        "--page", default="", choices=["", *(kind.spec.name for kind in PAGES)], help="the page of the last time if none is named"
    )
    parser.add_argument("--theme", default="system", choices=("dark", "light", "system"))
    parser.add_argument(
        "--preparing", action="store_true", help="the instance is being made: show each line of standard input until it is there"
    )
    given = parser.parse_args(arguments)
    try:
        return app.run(given.state_dir, given.page, given.theme, preparing=given.preparing)
    except ConsoleError as error:
        return print_error(("watchfloor",), error)


if __name__ == "__main__":
    sys.exit(until_interrupted(main))
