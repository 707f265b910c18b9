"""A real X server (Xvfb) and a hand on it (xdotool): events with the timestamps that a person's have. Ended by pid."""

from __future__ import annotations

import os
import subprocess


class Display:
    """``with Display() as screen:``; ``screen.environment`` is for programs that are to show there."""

    def __enter__(self) -> Display:
        read, write = os.pipe()
        null = subprocess.DEVNULL
        argv = ("Xvfb", "-displayfd", str(write), "-screen", "0", "1280x800x24", "-nolisten", "tcp")
        self._server = subprocess.Popen(argv, stdin=null, stdout=null, stderr=null, pass_fds=(write,))
        os.close(write)
        with os.fdopen(read) as pipe:
            self.name = f":{pipe.readline().strip()}"
        rest = {k: v for k, v in os.environ.items() if k != "WAYLAND_DISPLAY"}
        self.environment = {**rest, "DISPLAY": self.name, "QT_QPA_PLATFORM": "xcb"}
        return self

    def __exit__(self, *_: object) -> None:
        self._server.terminate()
        self._server.wait(timeout=60)

    def hand(self, *words: object) -> str:
        """What ``xdotool WORDS`` printed; empty when it found nothing."""
        argv = ("xdotool", *map(str, words))
        return subprocess.run(argv, env=self.environment, capture_output=True, text=True, timeout=60, check=False).stdout.strip()

    def windows(self, title: str) -> list[str]:
        """Ids of the windows of this title that are shown now."""
        return self.hand("search", "--onlyvisible", "--name", title).split()
