"""``python -m tests.golden --write`` makes the golden files again; without it, prints what would differ and ends with 1."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

from tests.golden import guard_lines, story, texts

FILES = Path(__file__).with_name("files")


def collected() -> dict[str, str]:
    """Every golden file as it is now."""
    return {"help.txt": texts.helps(), **texts.receipts(), **guard_lines.collect(), **story.collect()}


def difference(name: str, now: str) -> str:
    """Of one file, in unified lines; empty when nothing differs."""
    path = FILES / name
    then = path.read_text() if path.exists() else ""
    return "".join(difflib.unified_diff(then.splitlines(True), now.splitlines(True), f"golden/{name}", "now", n=2))


def main() -> int:
    now = collected()
    if "--write" not in sys.argv[1:]:
        found = [text for name, said in now.items() if (text := difference(name, said))]
        print("\n".join(found))
        return 1 if found else 0
    FILES.mkdir(exist_ok=True)
    for path in FILES.iterdir():
        if path.name not in now:
            path.unlink()
    for name, said in now.items():
        (FILES / name).write_text(said)
    return 0


if __name__ == "__main__":
    sys.exit(main())
