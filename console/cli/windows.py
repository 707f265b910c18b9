"""``watchfloor`` (the console), ``panic-button``, ``screenshot`` and ``supervisor``: programs this one starts or becomes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from console.cli.embedded import ensure_supervisor
from console.cli.modules import become, folder_arguments
from console.cli.options import StateDir, new_app, verb_app
from console.domain.errors import Unavailable, UsageProblem

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
)
DISPLAY_REMEDY = "Log in on a desktop, or use: watchfloor fleet, watchfloor status, watchfloor screenshot PAGE FILE."


def has_display() -> bool:
    """Whether a window can be shown: X11, Wayland, or a Qt platform named on purpose."""
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))


def _need_display(what: str) -> None:
    if not has_display():
        raise Unavailable(f"{what} is not available here, because there is no display.", DISPLAY_REMEDY)


def open_console(state_dir: str | None) -> int:
    """The console; starts an embedded supervisor when none runs."""
    _need_display("The console's window")
    places = ensure_supervisor(state_dir)
    return become("console.gui", "--state-dir", str(places.state_dir))


def panic_button(state_dir: StateDir = None) -> int:
    """Panic as a small always-on-top window in its own process; it needs the guard only."""
    _need_display("The panic window")
    return become("console.gui.panic_button", *folder_arguments(state_dir))


def screenshot(
    page: Annotated[str, typer.Argument(metavar="PAGE", help=f"{', '.join(PAGES)}.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The PNG to write.")],
    theme: Annotated[str, typer.Option("--theme", metavar="THEME", help="dark or light.")] = "dark",
    state_dir: StateDir = None,
) -> int:
    """Render a page offscreen; needs no display, and no supervisor."""
    if page not in PAGES:
        raise UsageProblem(f"There is no page {page[:40]!r}.", f"Pages: {', '.join(PAGES)}.")
    if theme not in ("dark", "light"):
        raise UsageProblem(f"Theme {theme[:40]!r} is not dark or light.", "For example --theme light")
    return become("console.gui.screenshot", page, str(file), "--theme", theme, *folder_arguments(state_dir))


daemon_app = new_app()


@daemon_app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def supervisor(context: typer.Context, state_dir: StateDir = None) -> int:
    """Run the daemon in the foreground; Ctrl-C ends it, agents and guard stay as they are.

    Takes the daemon's own options too, kept for the next start: --engine-socket, --discover-root, --remote-bucket, --remote-key,
    --remote-endpoint, --remote-fleet, --remote-poll-s, --host-name, --heartbeat-s, --egress-netns, --egress-hosts.
    """
    return become("console.supervisor", "serve", *folder_arguments(state_dir), *context.args)


APPS = {"panic-button": verb_app(panic_button), "screenshot": verb_app(screenshot), "supervisor": daemon_app}
