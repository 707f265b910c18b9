"""The allowlist as a file: what is written comes back, and whatever could be read in two ways is refused."""

from __future__ import annotations

import pytest

from console.domain.errors import UsageProblem
from console.domain.network import AllowlistEntry, Sensitivity
from console.egress.allowlist_file import ENTRIES_MAX, read_file, write_file

HEAD = "watchfloor_allowlist: 1\nentries:\n"
FULL = AllowlistEntry(
    "draft",
    "*.example.com",
    8080,
    ("GET", "POST"),
    ("/v1/",),
    'a "reason": with \u202e and\nlines',
    "ann",
    "2031-01-31",
    Sensitivity.CONFIDENTIAL,
    ("10.0.0.0/8",),
)
PLAIN = AllowlistEntry("draft", "api.example.com", reason="yes", owner="no")


def test_what_is_written_comes_back() -> None:
    text = write_file((FULL, PLAIN))
    assert read_file(text).entries == (FULL, PLAIN)
    assert "\u202e" not in text and "port: 443" not in text
    assert read_file(write_file(())).entries == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must begin with"),
        ("[]", "must begin with"),
        ("watchfloor_allowlist: 2\nentries: []", "must begin with"),
        ("watchfloor_allowlist: true\nentries: []", "must begin with"),
        ("watchfloor_allowlist: 1", "must be a list"),
        ("watchfloor_allowlist: 1\nentries: {}", "must be a list"),
        ("watchfloor_allowlist: 1\nentries: []\nextra: 1", "'extra' is not a field"),
        ("watchfloor_allowlist: 1\nentries: []\nentries: []", "Line 3: 'entries' is given twice"),
        (HEAD + "  - host: a.example.com\n    host: b.example.com\n    reason: r\n    owner: o", "Line 4: 'host' is given twice"),
        (HEAD + "  - &a {host: a.example.com, reason: r, owner: o}\n  - *a", "anchors"),
        (HEAD + "  - <<: {host: a.example.com}\n    reason: r\n    owner: o", "given twice or merged"),
        (HEAD + "  - a.example.com", "Entry 1 is not a mapping"),
        (HEAD + "  - reason: r\n    owner: o", "host is missing"),
        (HEAD + "  - host: a.example.com\n    reason: r", "needs a reason and an owner"),
        (HEAD + "  - host: A.example.com\n    reason: r\n    owner: o", "not a lower-case DNS name"),
        (HEAD + "  - host: '*.com'\n    reason: r\n    owner: o", "every name below 'com'"),
        (HEAD + "  - host: a.example.com\n    port: '443'\n    reason: r\n    owner: o", "port must be a number"),
        (HEAD + "  - host: a.example.com\n    port: true\n    reason: r\n    owner: o", "port must be a number"),
        (HEAD + "  - host: a.example.com\n    port: 70000\n    reason: r\n    owner: o", "outside 1 to 65535"),
        (HEAD + "  - host: a.example.com\n    methods: GET\n    reason: r\n    owner: o", "methods must be a list"),
        (HEAD + "  - host: a.example.com\n    reason: yes\n    owner: o", "reason must be text"),
        (HEAD + "  - host: a.example.com\n    review_by: 2031-01-31\n    reason: r\n    owner: o", "review_by must be text"),
        (HEAD + "  - host: a.example.com\n    may_receive: everything\n    reason: r\n    owner: o", "not a data class"),
        (HEAD + "  - host: a.example.com\n    entry_id: e1\n    reason: r\n    owner: o", "'entry_id' is not a field"),
        (HEAD + "  - host: a.example.com\n    private_networks: [8.8.8.0/24]\n    reason: r\n    owner: o", "not inside a private range"),
        (HEAD + "  - {host: a.example.com", "not YAML"),
        ("!!python/object/apply:os.system [id]", "not YAML"),
        ("[" * 50_000, "Not YAML"),
        ("x" * ((1 << 20) + 1), "KiB"),
        (HEAD + "  - {}\n" * (ENTRIES_MAX + 1), "at most"),
    ],
)
def test_what_is_unclear_is_refused_with_where(text: str, words: str) -> None:
    with pytest.raises(UsageProblem, match=words):
        read_file(text)
