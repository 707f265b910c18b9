"""``watchfloor demo``: the verb; what it shows is in demo.py and its neighbours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from console.cli.syntax import Option, example
from console.demo.course import DemoOptions, run_demo
from console.domain.errors import UsageProblem


@example("--headless")
def demo(
    headless: Annotated[bool, Option("--headless", help="No window even where there is a display.")] = False,
    seconds: Annotated[float, Option("--seconds", help="How long the live tree is shown before the panic (headless).")] = 20.0,
    agents: Annotated[int, Option("--agents", help="About how many agents.")] = 16,
    theme: Annotated[str, Option("--theme", metavar="THEME", help="dark or light, of the pictures.")] = "dark",
    state_dir: Annotated[
        Path | None, Option("--state-dir", metavar="DIR", help="A new folder to use and keep; without: a throw-away one.")
    ] = None,
) -> int:
    """A real fleet in an instance of its own: watched, capped, stopped with proof; then nothing is left behind."""
    if theme not in ("dark", "light"):
        raise UsageProblem(f"Theme {theme[:40]!r} is not dark or light.", "For example --theme light")
    return run_demo(DemoOptions(headless=headless, seconds=seconds, agents=agents, state_dir=state_dir, theme=theme))
