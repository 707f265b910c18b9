"""``watchfloor allowlist list | add | remove | test`` (and the verbs of ``allowlist_review``): what agents in PROXIED mode may reach."""

from __future__ import annotations

from typing import Annotated

from console.api.messages import AllowlistChangedView, AllowlistEntryBody, UrlTestBody
from console.cli.limits.allowlist_review import add_review, marks_of
from console.cli.link import build, connect
from console.cli.options import Json, Reason, StateDir
from console.cli.syntax import Argument, Option, Verbs, example
from console.cli.terminal import out
from console.cli.terminal.plain import moment, plain
from console.cli.terminal.tables import new_table
from console.domain.errors import ExitCode
from console.domain.network import TLS_PORT

app = Verbs("Destinations that agents in PROXIED mode may reach; empty means none.", shows="add")
Words = list[str] | None


@app.command("list")
def list_entries(state_dir: StateDir = None, as_json: Json = False) -> int:
    """Entries with reason, owner and use."""
    with connect(state_dir) as client:
        seen = client.allowlist()
    if as_json:
        out.emit_view(seen)
        return 0
    out.say(f"version {seen.version}, Envoy {seen.envoy}{f' ({plain(seen.envoy_detail, 300)})' if seen.envoy_detail else ''}")
    if not seen.entries:
        out.say("No entries: in PROXIED mode a started program reaches its model, and others reach nothing.")
        return 0
    table = new_table("ENTRY", "HOST", "METHODS", "PATHS", "PRIVATE", "MAY RECEIVE", "OWNER", "LAST USED", "7 D", "REASON")
    for e in seen.entries:
        used = "never" if e.last_used is None else moment(e.last_used)
        table.add_row(
            out.words(e.entry_id, limit=30),
            out.words(f"{e.host}:{e.port}", limit=260),
            out.words(",".join(e.methods) or "any", limit=80),
            out.words(" ".join(e.paths) or "any", limit=200),
            out.words(" ".join(e.private_networks) or "-", limit=100),
            out.words(e.may_receive, limit=20),
            out.words(e.owner, limit=60),
            used,
            str(e.hits_7d),
            out.words(e.reason, limit=120),
        )
    out.show(table)
    for e in seen.entries:
        for words in marks_of(e):
            out.say(f"{plain(e.entry_id, 30)} {words}")
    return 0


@app.command("add")
@example("api.example.com --reason 'the model' --owner me")
def add(
    host: Annotated[str, Argument(metavar="HOST", help="api.example.com or *.example.com")],
    reason: Reason,
    owner: Annotated[str, Option("--owner", metavar="WHO", help="Who answers for it.")],
    port: Annotated[int, Option("--port", min=1, max=65535)] = 443,
    method: Annotated[Words, Option("--method", metavar="METHOD", help="Repeatable; without: any (plain HTTP).")] = None,
    path: Annotated[Words, Option("--path", metavar="PREFIX", help="Repeatable; without: any (plain HTTP).")] = None,
    private: Annotated[Words, Option("--private-network", metavar="CIDR", help="Private range it may resolve to.")] = None,
    may_receive: Annotated[
        str,
        Option("--may-receive", metavar="LEVEL", help="Highest class of data: sessions with more sensitive data do not reach it."),
    ] = "INTERNAL",
    review_by: Annotated[str, Option("--review-by", metavar="DATE", help="Next review, YYYY-MM-DD.")] = "",
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask when a terminal is shown a danger.")] = False,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Add a destination: what a reviewer should see first, then saved after Envoy has validated it."""
    body = build(
        AllowlistEntryBody,
        host=host,
        port=port,
        methods=[m.upper() for m in method or ()],
        paths=list(path or ()),
        reason=reason,
        owner=owner,
        review_by=review_by,
        may_receive=may_receive.upper(),
        private_networks=list(private or ()),
    )
    scheme = "https" if port == TLS_PORT else "http"
    probe = build(UrlTestBody, url=f"{scheme}://{host.replace('*', 'probe', 1)}:{port}{(path or ['/'])[0]}"[:2000], entry=body)
    with connect(state_dir, starts=True) as client:
        # What a reviewer should know comes first: a warning about what is live already is too late.
        marks = [f"{'DANGER' if mark.danger else 'note'}: {plain(mark.words, 200)}" for mark in client.test_url(probe).marks]
        for words in marks:
            out.note(words)
        if any(words.startswith("DANGER") for words in marks) and not yes and out.is_asked():
            out.confirm("Save it all the same?")
        return _changed(client.add_entry(body), as_json)


@app.command("remove")
@example("e-1b2c3d4e --reason 'not used'")
def remove(
    entry: Annotated[str, Argument(metavar="ENTRY", help="Its id, as allowlist list shows it.")],
    reason: Reason,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Remove a destination; open connections to it are cut by Envoy."""
    with connect(state_dir) as client:
        return _changed(client.remove_entry(entry, reason=reason), as_json)


@app.command("test")
@example("https://api.example.com/v1/messages")
def test(
    url: Annotated[str, Argument(metavar="URL")],
    method: Annotated[str, Option("--method", metavar="METHOD")] = "GET",
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Would an agent in PROXIED mode reach it, by which entry. Exit 0: yes, 4: no."""
    body = build(UrlTestBody, url=url, method=method.upper())
    with connect(state_dir) as client:
        verdict = client.test_url(body)
    if as_json:
        out.emit_view(verdict)
    else:
        out.say(f"{'allowed' if verdict.allowed else 'blocked'}: {plain(verdict.reason, 500)}")
    return int(ExitCode.DONE if verdict.allowed else ExitCode.DENIED)


add_review(app)


def _changed(answer: AllowlistChangedView, as_json: bool) -> int:
    if as_json:
        out.emit_view(answer)
    else:
        out.say(f"{plain(answer.entry_id)}: {plain(answer.words, 500)}")
    return 0
