"""``watchfloor webhook set | test | status | remove``: where alerts are sent, signed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

from console.cli.link import build, connect
from console.cli.options import Json, StateDir
from console.cli.stop.secret_input import read_passphrase
from console.cli.syntax import Argument, Option, Verbs, example
from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.domain.errors import ExitCode, UsageProblem
from console.domain.words import counted

if TYPE_CHECKING:
    from console.api.alerts import WebhookView

app = Verbs(
    "Where alerts are sent: a panic, a kill that is not confirmed, readiness lost, a limit reached, an approval, an agent that came back.",
    shows="status",
)


@app.command("set")
@example("https://alerts.example.com/watchfloor")
def set_(
    url: Annotated[str, Argument(metavar="URL", help="https://..., or http:// to this host alone.")],
    secret_fd: Annotated[int | None, Option("--secret-fd", metavar="N", min=0, help="Read the secret from this descriptor.")] = None,
    secret_file: Annotated[str | None, Option("--secret-file", metavar="FILE", help="Read the secret from this 0600 file.")] = None,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Send alerts to URL from now on. Without a secret one is made, and shown this once: the receiver needs it."""
    from console.api.alerts import WebhookBody  # the model of messages loads slowly, and `status` uses this module

    secret = ""
    if secret_fd is not None or secret_file is not None:
        secret = read_passphrase("", secret_fd, secret_file)
        if not secret:
            raise UsageProblem("The secret is empty.", "Write whsec_ and base64 of 24 to 64 bytes there, or give no secret.")
    with connect(state_dir, starts=True) as client:
        view = client.set_webhook(build(WebhookBody, url=url, secret=secret))
    if as_json:
        out.emit_view(view)
        return 0
    out.say_folded(f"alerts go to {plain(view.url, 300)}")
    if view.secret:
        out.say(f"secret, shown this once: {plain(view.secret, 200)}")
    out.say_folded("watchfloor webhook test sends one now")
    return 0


@app.command("test")
def test(state_dir: StateDir = None, as_json: Json = False) -> int:
    """Send one alert now, and tell what the receiver answered. Exit 1 when it was not delivered."""
    with connect(state_dir) as client:
        done = client.test_webhook()
    if as_json:
        out.emit_view(done)
    else:
        out.say_folded(f"{plain(done.words, 400)} ({done.ms:.0f} ms)")
    return int(ExitCode.DONE if done.delivered else ExitCode.FAILURE)


@app.command("status")
def status(state_dir: StateDir = None, as_json: Json = False) -> int:
    """Where alerts go, how many wait and since when. Exit 7 when some wait or were never delivered."""
    with connect(state_dir) as client:
        view = client.webhook()
    if as_json:
        out.emit_view(view)
    else:
        for line in webhook_lines(view) or ["no webhook is set: watchfloor webhook set URL"]:
            out.say_folded(line)
    return int(ExitCode.LATER_STEP if view.waiting or view.given_up or view.stopped else ExitCode.DONE)


@app.command("remove")
def remove(state_dir: StateDir = None, as_json: Json = False) -> int:
    """Send no more alerts. Those that wait are dropped, and the secret is deleted."""
    with connect(state_dir) as client:
        view = client.remove_webhook()
    if as_json:
        out.emit_view(view)
    else:
        out.say("removed: no alerts are sent any more")
    return 0


def webhook_lines(view: WebhookView) -> list[str]:
    """What a person should know of it; nothing when none is set."""
    if not view.url:
        return []
    lines = [f"alerts go to {plain(view.url, 300)}" + (f", last delivered {_at(view.delivered_at)}" if view.delivered_at else "")]
    if view.waiting:
        lines.append(f"{counted(view.waiting, 'alert')} not delivered yet, the oldest of {_at(view.waiting_since)}")
    if view.given_up:
        lines.append(f"{counted(view.given_up, 'alert')} never delivered, the first of {_at(view.given_up_since)}")
    if view.trouble:
        lines.append(f"last try: {plain(view.trouble, 300)}")
    if view.stopped:
        lines.append("the receiver answered 410 Gone, so nothing is sent; watchfloor webhook test tries it")
    elif view.next_try_s is not None:
        lines.append(f"next try in {view.next_try_s:.0f} s")
    return lines


def _at(moment: float | None) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment)) if moment is not None else "unknown"
