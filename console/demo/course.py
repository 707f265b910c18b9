"""``watchfloor demo``: a real fleet in a throw-away instance, the whole job shown on it, and nothing left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from console.cli.stop.receipt_text import show_receipt
from console.cli.terminal import out
from console.cli.windows import has_display
from console.demo import show as demo_show
from console.demo.checks import exit_code
from console.demo.hosts import host_environment
from console.demo.stage import FIRST, Stage
from console.domain.errors import ExitCode, UsageProblem

SETTLE_S = 90.0
"""How long a slow machine may take until everything before the press has been seen."""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What the verb takes."""

    headless: bool = False
    """No window even where there is a display."""
    seconds: float = 20.0
    """How long the live tree is shown before the press (headless)."""
    agents: int = 16
    """About how many agents; the demo's own cast is the least."""
    state_dir: Path | None = None
    """An empty folder to use instead of a throw-away one; it is kept."""
    theme: str = "dark"


class _Ended(KeyboardInterrupt):
    """SIGTERM or SIGHUP: the same orderly end as Ctrl-C."""


def run_demo(options: DemoOptions) -> int:
    """Runs it and returns the exit code: 0 when everything it claims held (see demo_checks.exit_code). Raises ConsoleError."""
    if not 0 <= options.seconds <= 86_400 or not 1 <= options.agents <= 500:
        raise UsageProblem(
            "The demo takes 0 to 86400 seconds and 1 to 500 agents.", "For example: watchfloor demo --seconds 20 --agents 30"
        )
    headless = options.headless or not has_display()
    with _orderly_end(), _folder(options.state_dir) as folder:
        window = None if headless else _Window(folder / FIRST)
        stage = Stage(folder, options.agents, options.seconds + 600 if headless else 86_400, window.tell if window else out.note)
        try:
            stage.set_up()
            out.say("")
            out.say("Look at it from another terminal:")
            for line in demo_show.commands(stage.first.places.state_dir, stage.other.places.state_dir if stage.other else None):
                out.say(f"  {line}")
            out.say("")
            code = _headless(stage, options) if window is None else window.wait()
        finally:
            if window is not None:
                window.close()
            left = _end(stage)
    if left:
        out.note("NOT CLEAN, left behind: " + ", ".join(left))
        return int(ExitCode.FAILURE) if code == 0 else code
    return code


def _headless(stage: Stage, options: DemoOptions) -> int:
    # 1. Watch it live, until all there is to see before a press has been seen.
    demo_show.watch(stage.fleet, options.seconds)
    before = stage.before_press(SETTLE_S)
    out.show(*demo_show.fleet_table(stage.fleet()))
    pictures = [_picture(stage, "fleet", options.theme)]
    # 2. Press.
    out.say("")
    out.say(f"{demo_show.program()} panic --state-dir {stage.first.places.state_dir} --reason demo")
    receipt = stage.press()
    if receipt is not None:
        show_receipt(receipt, as_json=False)
    # 3. What came of it, here and on the other host.
    after, other = stage.after_press(receipt)
    if other is not None:
        out.say("")
        out.say("The other host's receipt:")
        show_receipt(other, as_json=False)
    pictures.append(_picture(stage, "kill-switch", options.theme))
    # 4. The account.
    out.say("")
    demo_show.promises([*before, *after])
    for picture in pictures:
        if picture is not None:
            out.say(f"picture: {picture}")
    return int(exit_code([*before, *after], receipt))


class _Window:
    """The console on the demo's first host. It is open before the host runs, and says what is being prepared until then."""

    def __init__(self, state_dir: Path) -> None:
        out.say("The console opens; closing it ends the demo.")
        words = [sys.executable, "-m", "console.gui", "--state-dir", str(state_dir), "--preparing"]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, env=host_environment())

    def tell(self, words: str) -> None:
        """Shows one step of the preparation, in the terminal and in the window."""
        out.note(words)
        if self._process.stdin is not None and self._process.poll() is None:
            with suppress(OSError):  # it was closed at this moment
                self._process.stdin.write(f"{words}\n".encode())
                self._process.stdin.flush()

    def wait(self) -> int:
        """Returns the window's exit code once a person has closed it."""
        self.tell("The demo is ready: 16 agents run. Hold Panic to stop them all, or close this window to end the demo.")
        return self._process.wait()

    def close(self) -> None:
        """Ends the window if it is still open."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        if self._process.poll() is None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(10)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def _picture(stage: Stage, page: str, theme: str) -> Path | None:
    """A PNG of the console's page in the current folder (else the temporary one); None, and why, when it cannot be rendered."""
    folder = Path.cwd() if os.access(Path.cwd(), os.W_OK) else Path(tempfile.gettempdir())
    file = folder / f"watchfloor-demo-{page}.png"
    command = [sys.executable, "-m", "console", "screenshot", page, str(file), "--theme", theme]
    command += ["--state-dir", str(stage.first.places.state_dir)]
    began = time.time()
    try:
        told = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=host_environment(), timeout=90, check=False)
        words = told.stderr.decode(errors="replace").strip()[-200:]
    except subprocess.TimeoutExpired:
        words = "it took longer than 90 s"
    if file.exists() and file.stat().st_mtime >= began - 2:
        return file
    out.show(out.words(f"The console's picture was not rendered: {words or 'no words'}", "yellow", 300))
    return None


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    """A throw-away folder that agents may pass through and not list; or the given one, which must be new or empty."""
    if given is not None:
        folder = given.expanduser().absolute()
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageProblem(f"{folder} is not empty: the demo makes an instance of its own.", "Name a new folder, or none.")
        folder.chmod(0o711)
        yield folder
        return
    folder = Path(tempfile.mkdtemp(prefix="watchfloor-demo-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _orderly_end() -> Iterator[None]:
    """SIGTERM and SIGHUP end the demo as Ctrl-C does: through the finally clauses."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise _Ended

    old = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _end(stage: Stage) -> list[str]:
    """Ends everything; a second Ctrl-C does not stop the cleaning."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    old = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    out.note("Ending the demo ...")
    try:
        return stage.end()
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
