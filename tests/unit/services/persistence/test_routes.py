"""What the hunts found, as one answer: an agent decides how much there is, and the answer ends all the same."""

from __future__ import annotations

from typing import Any

from console.rollback.persistence.findings import Change, Finding, Report
from console.services.persistence.routes import BYTES_MAX, FINDINGS_MAX, view_of


def finding(number: int, **more: Any) -> Finding:
    fields: dict[str, Any] = {"root": "session:c", "path": f"/w/{number}", "kind": "git hook", "change": Change.ADDED, "runs": "you"}
    fields |= {"what": "file", "before_sha256": "", "after_sha256": "a" * 64, "uid": 1, "mtime": 1.0, "size": 1}
    return Finding(**(fields | {"excerpt": "", "could_write": "yes"} | more))


def test_everything_that_fits_is_there_in_its_order() -> None:
    view = view_of([Report("c1", 1.0, 1.0, findings=(finding(1),), left_out=2), Report("c2", 2.0, None, doubts=("there is no baseline",))])
    assert [(r.context_id, len(r.findings), r.left_out, r.doubts) for r in view.reports] == [
        ("c1", 1, 2, []),
        ("c2", 0, 0, ["there is no baseline"]),
    ]
    assert (view.left_out, view.words) == (0, "")


def test_more_than_fits_is_counted_where_it_is_missing() -> None:
    many = tuple(finding(n) for n in range(500))
    view = view_of([Report(f"c{n}", float(n), 1.0, findings=many, left_out=7) for n in range(200)])
    assert len(view.reports) == 200  # no session goes unsaid
    assert sum(len(r.findings) for r in view.reports) == FINDINGS_MAX
    assert view.left_out == 200 * 500 - FINDINGS_MAX == sum(r.left_out - 7 for r in view.reports)
    assert "99,000 findings are left out" in view.words


def test_the_answer_is_bounded_in_bytes_however_it_is_escaped() -> None:
    fat = tuple(finding(n, path="\\" * 501, excerpt="\\" * 800, note='"' * 1600) for n in range(500))
    worst = [Report(f"c{n}", 1.0, 1.0, doubts=("\\" * 2000,) * 90, findings=fat, not_looked=("home: no", "system: no")) for n in range(200)]
    view = view_of(worst)
    assert len(view.to_json()) < 5 * BYTES_MAX
    assert sum(len(view.reports[0].findings) for r in view.reports) > 0 and view.left_out
    assert view.reports[0].doubts[-1] == "and 70 doubts more"
