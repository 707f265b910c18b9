"""How long a person waits for the first window, beside a bare QMainWindow with one label.

``python -m tests.bench.first_window [--runs 7] [--json]``

Each run is a process of its own, from its start until its window is painted, offscreen; the two kinds alternate. Medians and their ratio.
Bound: at most 3 times the bare window. Exit code 1 when it is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

_BARE = """
from PySide6.QtWidgets import QApplication, QLabel, QMainWindow
app = QApplication(["bare"])
window = QMainWindow()
window.setCentralWidget(QLabel("bare"))
"""
_OURS = """
import sys
from console.gui.app import make_application
from console.gui.notices import Notices
from console.gui.window.main import Window
from console.settings.places import find_places
app = make_application("dark")
window = Window(find_places(sys.argv[1], create=True), Notices())
window.start("fleet")
"""
_SHOWN = """
window.resize(1440, 900)
window.show()
app.processEvents()
window.grab()
import os
os._exit(0)
"""
MOST = 3.0


def took(code: str, folder: str) -> float:
    """Seconds from the start of a process until its window is painted."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", code + _SHOWN, folder], check=True, env=os.environ | {"QT_QPA_PLATFORM": "offscreen"})
    return time.monotonic() - began


def main() -> int:
    """The figures, and whether the bound holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        took(_OURS, folder)  # what is compiled is compiled
        runs = [(took(_BARE, folder), took(_OURS, folder)) for _ in range(given.runs)]
    bare, ours = (statistics.median(one[at] for one in runs) for at in range(2))
    found = {"bare_s": round(bare, 3), "first_window_s": round(ours, 3), "ratio": round(ours / bare, 2), "at_most": MOST}
    print(json.dumps(found) if given.json else "  ".join(f"{name} {value}" for name, value in found.items()))
    return int(ours > MOST * bare)


if __name__ == "__main__":
    sys.exit(main())
