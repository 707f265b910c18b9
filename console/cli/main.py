"""The command line's door: finds the verb, and is the only place in it where errors become words and exit codes."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

import typer
import typer.core
import typer.main

import console
from console.cli import out
from console.cli.options import StateDir, new_app
from console.domain.errors import ConsoleError, ExitCode
from console.settings.places import STATE_DIR_VARIABLE

INTERRUPTED = 130
TRACEBACK_VARIABLE = "WATCHFLOOR_TRACEBACK"


def _act(name: str) -> typer.Typer:
    from console.cli import act

    return act.APPS[name]


def _switch(name: str) -> typer.Typer:
    from console.cli import switch

    return switch.APPS[name]


def _hook(name: str) -> typer.Typer:
    from console.cli import hook

    return hook.APPS[name]


def _rearm(_: str) -> typer.Typer:
    from console.cli import rearm

    return rearm.app


def _passphrase(_: str) -> typer.Typer:
    from console.cli import passphrase

    return passphrase.app


def _machinery(name: str) -> typer.Typer:
    from console.cli import machinery

    return machinery.APPS[name]


def _windows(name: str) -> typer.Typer:
    from console.cli import windows

    return windows.APPS[name]


def _fleet(_: str) -> typer.Typer:
    from console.cli import fleet

    return fleet.app


def _activity(_: str) -> typer.Typer:
    from console.cli import activity

    return activity.app


def _run(_: str) -> typer.Typer:
    from console.cli import launch

    return launch.app


def _panic(_: str) -> typer.Typer:
    from console.cli import panic

    return panic.app


def _sources(name: str) -> typer.Typer:
    from console.cli import sources

    return sources.app if name == "sources" else sources.hardening_app


def _contexts(_: str) -> typer.Typer:
    from console.cli import contexts

    return contexts.app


def _network(_: str) -> typer.Typer:
    from console.cli import network

    return network.app


def _budget(_: str) -> typer.Typer:
    from console.cli import budget

    return budget.app


def _allowlist(_: str) -> typer.Typer:
    from console.cli import allowlist

    return allowlist.app


def _approvals(_: str) -> typer.Typer:
    from console.cli import approvals

    return approvals.app


def _dry_run(name: str) -> typer.Typer:
    from console.cli import dry_run

    return dry_run.APPS[name]


def _rollback(_: str) -> typer.Typer:
    from console.cli import rollback

    return rollback.app


def _secrets(name: str) -> typer.Typer:
    from console.cli import secrets

    return secrets.APPS[name]


def _audit(_: str) -> typer.Typer:
    from console.cli import audit

    return audit.app


def _receipt(_: str) -> typer.Typer:
    from console.cli import receipt

    return receipt.app


def _watch(_: str) -> typer.Typer:
    from console.cli import watch

    return watch.app


def _demo(_: str) -> typer.Typer:
    from console.cli import try_out

    return try_out.app


def _adopt(_: str) -> typer.Typer:
    from console.cli import adopt

    return adopt.app


def _tools(_: str) -> typer.Typer:
    from console.cli import tools

    return tools.app


def _cost(_: str) -> typer.Typer:
    from console.cli import cost

    return cost.app


def _talk(name: str) -> typer.Typer:
    from console.cli import talk

    return talk.APPS[name]


def _policy(_: str) -> typer.Typer:
    from console.cli import policy

    return policy.app


# Each verb's module is imported when the verb is asked for: panic must not wait for an HTTP library.
VERBS: dict[str, Callable[[str], typer.Typer]] = {
    "supervisor": _windows,
    "fleet": _fleet,
    "activity": _activity,
    "run": _run,
    "say": _talk,
    "interrupt": _talk,
    "end": _talk,
    "freeze": _act,
    "thaw": _act,
    "isolate": _act,
    "reconnect": _act,
    "kill": _act,
    "adopt": _adopt,
    "panic": _panic,
    "panic-button": _windows,
    "rearm": _rearm,
    "passphrase": _passphrase,
    "release": _machinery,
    "status": _switch,
    "watch": _watch,
    "network": _network,
    "allowlist": _allowlist,
    "budget": _budget,
    "approvals": _approvals,
    "dry-run": _dry_run,
    "plan": _dry_run,
    "contexts": _contexts,
    "sources": _sources,
    "hardening": _sources,
    "rollback": _rollback,
    "audit": _audit,
    "cost": _cost,
    "keys": _machinery,
    "tools": _tools,
    "policy": _policy,
    "receipt": _receipt,
    "revoke": _secrets,
    "rotation": _secrets,
    "hook": _hook,
    "install-hook": _machinery,
    "doctor": _machinery,
    "demo": _demo,
    "screenshot": _windows,
}


class _Verbs(typer.core.TyperGroup):
    """The verbs, found by name without importing the others."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        return list(VERBS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]
        if cmd_name in VERBS:
            command = typer.main.get_command(VERBS[cmd_name](cmd_name))
        else:
            from console.cli import later

            if cmd_name not in later.VERBS:
                return None
            command = typer.main.get_command(later.later_app(cmd_name))
        command.name = cmd_name
        return command


_WORDS = "See every AI agent live, cap it, and stop all of it with proof. Without a verb: open the console."
app = new_app(_WORDS, cls=_Verbs, invoke_without_command=True)


@app.callback()
def watchfloor(
    ctx: typer.Context,
    state_dir: StateDir = None,
    version: bool = typer.Option(False, "--version", help="Print the version."),
) -> int:
    """What holds for every verb."""
    if version:
        out.say(f"watchfloor {console.__version__}")
        return 0
    if state_dir is not None:
        os.environ[STATE_DIR_VARIABLE] = state_dir
    if ctx.invoked_subcommand is None and not version:
        from console.cli.windows import open_console

        return open_console(state_dir)
    return 0


def main(argv: list[str]) -> int:
    """Runs one verb and returns its documented exit code; never raises, never prints a traceback."""
    try:
        out.check_arguments(argv)
        if argv[:1] == ["panic"]:
            from console.cli import panic

            given = panic.read_plainly(argv[1:])
            if given is not None:
                return panic.panic(**given)
        code = typer.main.get_command(app).main(argv, prog_name="watchfloor", standalone_mode=False)
        return int(code) if isinstance(code, int) else 0
    except ConsoleError as error:
        return _refuse(error, argv)
    except typer.TyperException as error:
        return _refuse(_usage_error(error), argv)
    except (KeyboardInterrupt, typer.Abort):
        out.note("interrupted")
        return INTERRUPTED
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        return _refuse(ConsoleError(f"{error.strerror or error}{where}.", "Mend it and try again."), argv)
    except Exception as error:  # noqa: BLE001 - the door: a mistake of ours must not show as a traceback or pass as success
        return _refuse(_our_mistake(error), argv)


def _usage_error(error: typer.TyperException) -> ConsoleError:
    words = error.format_message() if hasattr(error, "format_message") else str(error)
    if words.startswith("Usage: "):  # a family of verbs without one: typer hands over its help
        out.note(words + "\n")
        words = "Which of these commands is meant was not said."
    of = getattr(getattr(error, "ctx", None), "command_path", "watchfloor")
    wrong = ConsoleError(words, "watchfloor --help lists the verbs." if of == "watchfloor" else f"{of} --help says what it takes.")
    wrong.exit_code = ExitCode.USAGE
    return wrong


def _our_mistake(error: Exception) -> ConsoleError:
    if os.environ.get(TRACEBACK_VARIABLE):
        out.note("".join(traceback.format_exception(error)))
    return ConsoleError(
        f"This is a mistake in watchfloor: {type(error).__name__}: {error}",
        f"Run it again with {TRACEBACK_VARIABLE}=1 and report what it prints.",
    )


def _refuse(error: ConsoleError, argv: list[str]) -> int:
    out.complain(error)
    own = argv[: argv.index("--")] if "--" in argv else argv
    if "--json" in own:
        out.emit({"error": error.what, "remedy": error.remedy, "exit_code": int(error.exit_code)})
    return int(error.exit_code)


def run() -> NoReturn:
    """Runs the verb named in sys.argv and ends the process."""
    raise SystemExit(main(sys.argv[1:]))
