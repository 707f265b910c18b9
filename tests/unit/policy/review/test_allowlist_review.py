"""Marks, differences and backtests of an allowlist, without network or clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from console.domain.network import Allowlist, AllowlistEntry, EgressRecord, Sensitivity
from console.egress.url_test import judge_request
from console.policy.review import allowlist_review
from console.policy.review.allowlist_review import GROUPS_MAX, Use, backtest, diff, kill_file_hosts, meets, overlaps, review

NOW = datetime(2030, 6, 15, 12, tzinfo=UTC).timestamp()
DAY = 86400.0


def entry(entry_id: str, host: str, port: int = 443, **more: object) -> AllowlistEntry:
    made = AllowlistEntry(entry_id, host, port, reason="r", owner="o")
    return replace(made, **more)  # type: ignore[arg-type]


def kinds(*entries: AllowlistEntry, use: dict[str, Use] | None = None, kill_hosts: tuple[str, ...] = ()) -> dict[str, list[str]]:
    marks = review(Allowlist(1, entries), use or {}, NOW, kill_hosts)
    return {entry_id: [m.kind for m in found] for entry_id, found in marks.items()}


def record(
    method: str, host: str, path: str = "", allowed: bool = False, rule: str = "no entry for it", agent: str = "a", at: float = NOW
) -> EgressRecord:
    return EgressRecord(at, agent, method, host, path, 200 if allowed else 403, 0, 0, allowed, rule)


def judge(allowlist: Allowlist, seen: EgressRecord) -> bool:
    return judge_request(allowlist, seen.method, seen.host + (":443" if seen.method == "CONNECT" else ""), seen.path).allowed


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("storage.googleapis.com", ["multi_tenant"]),
        ("*.googleapis.com", ["multi_tenant"]),
        ("mybucket.s3.amazonaws.com", ["multi_tenant"]),
        ("raw.githubusercontent.com", ["multi_tenant"]),
        ("gist.github.com", ["publishing"]),
        ("api.github.com", ["multi_tenant"]),  # gists go through it
        ("*.github.com", ["publishing"]),  # gist.github.com lies within
        ("upload.pypi.org", ["publishing"]),
        ("*.pypi.org", ["publishing"]),
        ("pypi.org", []),
        ("github.com", []),
        ("notgoogleapis.com", []),
        ("*.com", ["publishing", "wide"]),
        ("*.co.uk", ["wide"]),
        ("api.example.com", []),
        ("*.example.com", []),
        ("xn--pple-43d.com", ["lookalike"]),
        ("*.api.xn--pple-43d.com", ["lookalike"]),
        ("xn--zzzzzzzzzzzzzz99999999.com", ["lookalike"]),
    ],
)
def test_hosts_anybody_can_write_to_are_marked(host: str, expected: list[str]) -> None:
    assert kinds(entry("e1", host))["e1"] == expected


def test_a_look_alike_name_is_told_in_letters_that_look_like_no_others() -> None:
    (mark,) = review(Allowlist(1, (entry("e1", "xn--pple-43d.com"),)), {}, NOW)["e1"]
    assert mark.is_danger and mark.words.startswith("reads as \\u0430pple.com in other letters")


def test_a_narrow_path_on_plain_http_makes_a_shared_host_less_dangerous() -> None:
    marks = review(Allowlist(1, (entry("e1", "files.r2.dev", 80, paths=("/ours/",), methods=("GET",)),)), {}, NOW)["e1"]
    assert [(m.kind, m.is_danger) for m in marks] == [("multi_tenant", False)]


@pytest.mark.parametrize("paths", [("/",), ("/ours/", "/")])
def test_a_path_that_is_every_path_narrows_nothing(paths: tuple[str, ...]) -> None:
    marks = review(Allowlist(1, (entry("e1", "files.r2.dev", 80, paths=paths, methods=("GET",)),)), {}, NOW)["e1"]
    assert [(m.kind, m.is_danger) for m in marks] == [("multi_tenant", True)]


def test_the_kill_files_host_is_every_name_under_which_its_bucket_is_served() -> None:
    google, own = kill_file_hosts("b", ""), kill_file_hosts("b", "https://Objects.Example.com.:9000/x")
    assert kill_file_hosts("", "https://objects.example.com") == ()
    assert own == ("objects.example.com", "*.objects.example.com")
    for host in ("storage.googleapis.com", "b.storage.googleapis.com", "*.googleapis.com", "www.googleapis.com"):
        assert meets(host, google) and not meets(host, own)
    for host in ("aiplatform.googleapis.com", "googleapis.com", "notstorage.googleapis.com", "example.com"):
        assert not meets(host, google) and not meets(host, own)


def test_the_kill_files_host_is_marked_first() -> None:
    marks = kinds(
        entry("e1", "*.kill.example.com", review_by="2020-01-01"), kill_hosts=kill_file_hosts("b", "https://bucket.kill.example.com")
    )["e1"]
    assert marks == ["kill_file", "review_due"]
    assert kinds(entry("e1", "api.example.com"), kill_hosts=kill_file_hosts("b", "https://bucket.kill.example.com"))["e1"] == []


def test_what_may_leave_is_marked() -> None:
    found = kinds(
        entry("e1", "in.example.com", 8080, private_networks=("10.0.0.0/8",)), entry("e2", "x.example.org", may_receive=Sensitivity.SECRET)
    )
    assert found == {"e1": ["open_methods", "private"], "e2": ["secret"]}


@pytest.mark.parametrize(
    ("first", "second", "superfluous"),
    [
        (entry("e1", "a.example.com"), entry("e2", "*.example.com"), {"e1"}),
        (entry("e1", "*.b.example.com"), entry("e2", "*.example.com"), {"e1"}),
        (entry("e1", "example.com"), entry("e2", "*.example.com"), set()),  # a wildcard does not cover its apex
        (entry("e1", "a.example.com"), entry("e2", "a.example.com"), {"e2"}),  # the same: the later one
        (entry("e1", "a.example.com", 80, methods=("GET",)), entry("e2", "a.example.com", 80, methods=("GET", "POST")), {"e1"}),
        (entry("e1", "a.example.com", 80), entry("e2", "a.example.com", 80, methods=("GET",)), {"e2"}),
        (
            entry("e1", "a.example.com", 80, methods=("GET",), paths=("/v1/a",)),
            entry("e2", "a.example.com", 80, methods=("GET",), paths=("/v1",)),
            {"e1"},
        ),
        (
            entry("e1", "a.example.com", 80, methods=("GET",), paths=("/v1x",)),
            entry("e2", "a.example.com", 80, methods=("GET",), paths=("/v1",)),
            set(),
        ),
        (entry("e1", "a.example.com", 443), entry("e2", "a.example.com", 80, methods=("GET",)), set()),
        (entry("e1", "a.example.com", private_networks=("10.0.0.0/8",)), entry("e2", "a.example.com"), {"e2"}),
    ],
)
def test_what_another_entry_allows_anyway_is_superfluous(first: AllowlistEntry, second: AllowlistEntry, superfluous: set[str]) -> None:
    assert {i for i, marks in kinds(first, second).items() if "overlap" in marks} == superfluous


def test_entries_are_compared_with_those_that_may_cover_them_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def counted(inner: AllowlistEntry, outer: AllowlistEntry) -> bool:
        compared.append(1)
        return within(inner, outer)

    within = allowlist_review._is_within
    monkeypatch.setattr(allowlist_review, "_is_within", counted)
    many = tuple(entry(f"e{n}", f"h{n}.example.com") for n in range(2000))
    assert len(overlaps(Allowlist(1, (*many, entry("w", "*.example.com"))))) == 2000
    assert len(compared) <= 3 * len(many)


def test_however_many_make_an_entry_superfluous_a_few_are_named() -> None:
    found = overlaps(Allowlist(1, tuple(entry(f"e{n}", "a.example.com") for n in range(300))))
    assert "e0" not in found and len(found["e1"]) == 1
    assert max(map(len, found.values())) == 4 and found["e299"][-1].words == "superfluous: and so do others"


def test_what_nobody_uses_is_marked_after_thirty_days() -> None:
    entries = tuple(entry(f"e{n}", f"h{n}.example.com") for n in range(5))
    use = {
        "e0": Use(NOW - 29 * DAY, NOW - 90 * DAY),
        "e1": Use(NOW - 31 * DAY, NOW - 90 * DAY),
        "e2": Use(None, NOW - 31 * DAY),
        "e3": Use(None, NOW - 2 * DAY),
    }
    assert [i for i, marks in kinds(*entries, use=use).items() if marks] == ["e1", "e2"]


def test_reviews_that_are_due_or_unreadable_are_marked() -> None:
    soon = (datetime.fromtimestamp(NOW, tz=UTC) + timedelta(days=10)).date().isoformat()
    found = kinds(
        *(entry(f"e{n}", f"h{n}.example.com", review_by=d) for n, d in enumerate(("2030-06-01", soon, "2031-01-01", "soonish", "")))
    )
    assert [i for i, marks in found.items() if marks == ["review_due"]] == ["e0", "e1", "e3"]


def test_a_difference_names_each_field() -> None:
    old = Allowlist(1, (entry("e1", "a.example.com"), entry("e2", "b.example.com", 80, methods=("GET",))))
    new = Allowlist(2, (entry("e2", "b.example.com", 80, methods=()), entry("e3", "c.example.com")))
    found = {c.entry_id: (c.what, c.fields) for c in diff(old, new)}
    assert found == {"e1": ("removed", ()), "e2": ("changed", (("methods", "GET", "any"),)), "e3": ("added", ())}
    assert diff(old, old) == ()


def test_a_backtest_tells_what_a_change_would_have_decided_differently() -> None:
    old = Allowlist(1, (entry("e1", "a.example.com"), entry("e2", "p.example.com", 80)))
    new = Allowlist(2, (entry("e2", "p.example.com", 80, methods=("GET",)), entry("e3", "b.example.com")))
    records = [
        record("CONNECT", "a.example.com", allowed=True, rule="entry e1", at=NOW - 5),
        record("CONNECT", "a.example.com", allowed=True, rule="entry e1", agent="b"),
        record("CONNECT", "b.example.com"),
        record("POST", "p.example.com", "/x", allowed=True, rule="entry e2"),
        record("GET", "p.example.com", "/x", allowed=True, rule="entry e2"),
        record("CONNECT", "z.example.com"),
        record("CONNECT", "b.example.com", rule="entry e3: the name leads to a private, own or metadata address it may not reach"),
        record("CONNECT", "b.example.com", rule="not a request Envoy accepts: x"),
    ]
    found = backtest(old, new, records, judge)
    assert (found.judged, found.left_out, found.changed) == (6, 2, 4)
    assert [(g.method, g.host, g.count) for g in found.newly_allowed] == [("CONNECT", "b.example.com", 1)]
    assert [(g.method, g.host, g.count, g.agents, g.last_at) for g in found.newly_blocked] == [
        ("CONNECT", "a.example.com", 2, ("a", "b"), NOW),
        ("POST", "p.example.com", 1, ("a",), NOW),
    ]


def test_what_an_older_list_decided_is_not_blamed_on_the_change() -> None:
    old, new = Allowlist(5, ()), Allowlist(6, (entry("e1", "b.example.com"),))
    assert backtest(old, new, [record("CONNECT", "a.example.com", allowed=True, rule="entry e9")], judge).changed == 0


def test_groups_are_bounded() -> None:
    new = Allowlist(2, (entry("e1", "*.example.com"),))
    found = backtest(Allowlist(1), new, (record("CONNECT", f"h{n}.example.com") for n in range(GROUPS_MAX + 50)), judge)
    assert len(found.newly_allowed) == GROUPS_MAX and found.changed == GROUPS_MAX + 50
