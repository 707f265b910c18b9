"""``watchfloor`` and ``python -m console``: hands over to the command line."""

from __future__ import annotations


def main() -> None:
    """Runs the command line and exits with the documented code."""
    from console.cli.main import run

    run()


if __name__ == "__main__":
    main()
