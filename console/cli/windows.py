"""``watchfloor`` (the console), ``panic-button``, ``screenshot`` and ``supervisor``: programs this one starts or becomes."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from console.cli.embedded import ensure_supervisor
from console.cli.handover import become, folder_arguments
from console.cli.options import StateDir, only_root
from console.cli.syntax import Argument, Option, Rest, example
from console.cli.terminal.plain import plain
from console.domain.errors import ConsoleError, Unavailable, UsageProblem
from console.domain.process.assets import resource
from console.domain.process.durable import replace_file
from console.panic.raising import SOCKET, raise_window
from console.settings.places import Places, choose_state_dir, find_places

PAGES = (
    "fleet",
    "kill-switch",  # among the first: a help text that is wrapped must not break it
    "receipt",
    "approvals",
    "policy",
    "network",
    "budgets",
    "rollback",
    "audit",
    "activity",
    "settings",
)
SCHEME = "watchfloor://"
ENTRY = "watchfloor-panic.desktop"
WINDOW_REMEDY = "Install the package watchfloor-console. Without it: watchfloor fleet, watchfloor status, watchfloor panic."
DISPLAY_REMEDY = "Log in on a desktop, or use: watchfloor fleet, watchfloor status, watchfloor screenshot PAGE FILE."


def has_display() -> bool:
    """Whether a window can be shown: X11, Wayland, or a Qt platform named on purpose."""
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))


def _need_display(what: str) -> None:
    if find_spec("PySide6") is None:
        raise Unavailable(f"{what} is not installed here.", WINDOW_REMEDY)
    if not has_display():
        raise Unavailable(f"{what} is not available here, because there is no display.", DISPLAY_REMEDY)


def open_console(state_dir: str | None, page: str = "") -> int:
    """The console; starts an embedded supervisor when none runs."""
    _need_display("The console's window")
    places = ensure_supervisor(state_dir)
    return become("console.gui", "--state-dir", str(places.state_dir), "--page", page)


@example("approvals")
def open_page(
    page: Annotated[str, Argument(metavar="PAGE", help=f"{', '.join(PAGES)}; or a link: {SCHEME}PAGE.")] = PAGES[0],
    state_dir: StateDir = None,
) -> int:
    """Open the window on one of its pages. A link to watchfloor:// does that and nothing else."""
    return open_console(state_dir, known_page(page.removeprefix(SCHEME).removesuffix("/")))


def known_page(page: str) -> str:
    """The page as it is called. Raises UsageProblem: anybody can write a link."""
    if page not in PAGES:
        raise UsageProblem(f"There is no page {page[:40]!r}.", f"Pages: {', '.join(PAGES)}.")
    return page


def panic_button(
    state_dir: StateDir = None,
    desktop_entry: Annotated[bool, Option("--desktop-entry", help="Put it into the desktop's menu instead.")] = False,
) -> int:
    """Raise the panic window: small, always on top, in a process of its own. It needs the guard only."""
    if desktop_entry:
        print(write_desktop_entry(state_dir))
        return 0
    places = find_places(state_dir, create=False)
    if places is not None and raise_window(str(places.run_dir / SOCKET)):
        return 0
    _need_display("The panic window")
    return become("console.panic", *_panic_arguments(places, state_dir))


def _panic_arguments(places: Places | None, state_dir: str | None) -> list[str]:
    """The arguments of the panic process, which searches for nothing itself: it imports neither settings nor the command line.

    A state directory that is gone is named all the same: its agents may still run, and ``panic`` finds them by its name.
    """
    if places is None:
        return ["--state-dir", str(choose_state_dir(state_dir)[0])]
    return ["--state-dir", str(places.state_dir), "--run-dir", str(places.run_dir)]


def write_desktop_entry(state_dir: str | None) -> Path:
    """The entry of the panic window in the menu of this account's desktop (Desktop Entry Specification 1.5), with paths of this machine."""
    command = [sys.executable, "-P", "-m", "console", "panic-button"]
    if state_dir:
        command += ["--state-dir", str(Path(state_dir).expanduser().absolute())]
    if not all(word.isprintable() for word in command):
        raise UsageProblem("A desktop entry cannot hold this folder's name.", "Rename the folder.")
    words = " ".join(_entry_word(word) for word in command)
    text = resource("desktop", ENTRY).read_text(encoding="utf-8")
    text = text.replace("Exec=watchfloor panic-button", f"Exec={words}").replace("Icon=watchfloor", f"Icon={resource('icons', 'logo.svg')}")
    home = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    file = home / "applications" / ENTRY
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, text.encode(), 0o644)
    except OSError as error:
        raise ConsoleError(f"{file} could not be written: {error.strerror or error}.", "Name another folder in XDG_DATA_HOME.") from error
    return file


def _entry_word(word: str) -> str:
    """One argument of ``Exec``: in quotation marks, its special signs behind a backslash, which is doubled in a value."""
    quoted = "".join("\\\\" + c if c in '"`$\\' else c for c in word).replace("%", "%%")
    return f'"{quoted}"'


@example("fleet fleet.png --theme light")
def screenshot(
    page: Annotated[str, Argument(metavar="PAGE", help=f"{', '.join(PAGES)}.")],
    file: Annotated[Path, Argument(metavar="FILE", help="The PNG to write.")],
    theme: Annotated[str, Option("--theme", metavar="THEME", help="dark or light.")] = "dark",
    state_dir: StateDir = None,
) -> int:
    """Render a page offscreen; needs no display, and no supervisor."""
    known_page(page)
    if theme not in ("dark", "light"):
        raise UsageProblem(f"Theme {theme[:40]!r} is not dark or light.", "For example --theme light")
    if find_spec("PySide6") is None:
        raise Unavailable("The window is not installed here.", WINDOW_REMEDY)
    return become("console.gui.screenshot", page, str(file), "--theme", theme, *folder_arguments(state_dir))


@example("--state-dir /srv/watchfloor")
def supervisor(rest: Rest, state_dir: StateDir = None) -> int:
    """Run the daemon in the foreground; Ctrl-C ends it, agents and guard stay as they are.

    Takes the daemon's own options too, kept for the next start: --engine-socket, --discover-root, --remote-bucket, --remote-key,
    --remote-endpoint, --remote-fleet, --remote-poll-s, --host-name, --heartbeat-s, --egress-netns, --egress-hosts.
    """
    if rest and not rest[0].startswith("-"):
        raise UsageProblem(
            f"supervisor runs the daemon in the foreground and takes no word such as {plain(rest[0], 40)!r}.",
            "Its service: systemctl restart watchfloor. To stop it: systemctl stop watchfloor.socket watchfloor-members.socket watchfloor",
        )
    only_root(find_places(state_dir, create=False), "supervisor", "Its service: systemctl start watchfloor")
    return become("console.supervisor", "serve", *folder_arguments(state_dir), *rest)
