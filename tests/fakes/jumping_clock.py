"""``python -m tests.fakes.jumping_clock serve ...``: the supervisor with a wall clock that a test moves: a file's seconds are added."""

from __future__ import annotations

import sys
import time
from pathlib import Path

JUMP = "clock-jump"
_real = time.time


def main() -> int:
    jump = Path(sys.argv[sys.argv.index("--state-dir") + 1]) / JUMP

    def moved() -> float:
        return _real() + float(jump.read_text() or 0 if jump.exists() else 0)

    time.time = moved
    from console.supervisor.__main__ import main as supervisor

    return supervisor()


if __name__ == "__main__":
    sys.exit(main())
