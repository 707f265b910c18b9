"""``watchfloor secrets passphrase set | reset | status``: what a rearm takes. The guard keeps it, hashed, away from the latch."""

from __future__ import annotations

from typing import Annotated

from console.api.client.api_client import ApiClient
from console.api.rearm import PassphraseBody, PassphraseView
from console.cli.link import connect
from console.cli.options import Json, StateDir
from console.cli.stop.secret_input import Fd, File, is_person, read_passphrase, typed
from console.cli.syntax import Option, Verbs
from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.domain.errors import Denied, UsageProblem
from console.domain.process.account import operator

app = Verbs("The passphrase that a rearm takes.")
_WORDS = {
    "set": "A passphrase is set: a rearm takes it, or a signature by an operator key.",
    "not_set": "No passphrase is set: the id of the kill, typed at a terminal or in the console, is enough for a rearm.",
    "broken": "The passphrase cannot be checked, so no rearm by it is possible",
    "unknown": "The guard does not say whether a passphrase is set.",
}


@app.command("set")
def set_(
    passphrase_fd: Fd = None,
    passphrase_file: File = None,
    old_fd: Annotated[int | None, Option("--old-fd", metavar="N", min=0, help="Read the old passphrase from here.")] = None,
    old_file: Annotated[str | None, Option("--old-file", metavar="FILE", help="Read the old passphrase from here.")] = None,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Set the passphrase, or change it. A change needs the old passphrase."""
    with connect(state_dir, starts=True) as client:
        old = ""
        if client.passphrase().passphrase == "set":
            old = _old(old_fd, old_file)
        new = read_passphrase("New passphrase: ", passphrase_fd, passphrase_file)
        if not new:
            raise UsageProblem("No passphrase was given.", "Type it at a terminal, or use --passphrase-fd or --passphrase-file.")
        if passphrase_fd is None and passphrase_file is None and is_person() and read_passphrase("Again: ") != new:
            raise UsageProblem("The two are not the same.", "Type the same passphrase twice.")
        view = client.change_passphrase(PassphraseBody(action="set", new=new, old=old, operator=operator()[:100]))
    return _tell(view, as_json=as_json)


@app.command("reset")
def reset(state_dir: StateDir = None, as_json: Json = False) -> int:
    """Forget it: only the owner of the state directory, at a terminal; while killed with the id of the kill typed by hand."""
    if not is_person():
        raise Denied("A passphrase is reset only at a terminal.", "Run it in one.")
    with connect(state_dir) as client:
        kill_id = _agreed(client)
        view = client.change_passphrase(PassphraseBody(action="reset", kill_id=kill_id, operator=operator()[:100]))
    return _tell(view, as_json=as_json)


@app.command("status")
def status(state_dir: StateDir = None, as_json: Json = False) -> int:
    """Whether one is set."""
    with connect(state_dir) as client:
        return _tell(client.passphrase(), as_json=as_json)


def _old(fd: int | None, file: str | None) -> str:
    if fd is None and file is None and not is_person():
        raise Denied("A passphrase is set already: changing it takes the old one.", "Give --old-fd or --old-file.")
    return read_passphrase("Old passphrase: ", fd, file)


def _agreed(client: ApiClient) -> str:
    """The id of the kill while killed; otherwise the word."""
    view = client.rearm_view()
    if not view.killed:
        if typed("Type 'reset' to forget the passphrase: ") != "reset":
            raise Denied("Not reset: the word was not typed.", "")
        return ""
    out.say(f"This instance is killed. The reset is on record, in the audit and in the receipt of {plain(view.to_type)}.")
    return typed(f"Type the id of the kill ({plain(view.to_type)}): ")


def _tell(view: PassphraseView, *, as_json: bool) -> int:
    if as_json:
        out.emit_view(view)
        return 0
    style = {"set": "green"}.get(view.passphrase, "yellow")
    words = _WORDS[view.passphrase] + (f": {plain(view.why, 300)}." if view.why else "")
    out.show(out.words(words, style, 500))
    if view.wrong:
        out.say(f"{view.wrong} wrong attempts in a row; the next is checked in {view.wait_s:g} s")
    for note in view.notes:
        out.say(f"note: {plain(note, 300)}")
    return 0
