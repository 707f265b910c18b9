"""Patterns as people write them: whatever is not certain is refused with what and where."""

from __future__ import annotations

import pytest

from console.api.policy import policy_data
from console.domain.errors import UsageProblem
from console.policy.sequences.sequence_file import in_force, read_sequences

GOOD = """
watchfloor_sequences: 1
patterns:
  - name: export-then-mail
    why: customer data leaves by mail
    same: path
    tighten: NONE
    steps:
      - {name: reads, any: [{action: read, paths: ["**/exports/**"]}]}
      - {name: mails, any: [{scopes: [SEND_EMAIL]}, {hosts: ["*.mail.example"]}, {tools: ["*mail*"]}, {commands: ["mail -s *"]}]}
"""


def test_a_whole_one_is_read() -> None:
    (pattern,) = read_sequences(GOOD.encode()).patterns
    assert (pattern.name, pattern.same, pattern.tighten, [step.name for step in pattern.steps]) == (
        "export-then-mail",
        "path",
        "NONE",
        ["reads", "mails"],
    )
    assert len(pattern.steps[1].any) == 4 and pattern.steps[1].any[3].commands == (("mail", "-s", "*"),)


BOMB = "a: &a [x,x]\nb: &b [*a,*a]\nwatchfloor_sequences: 1\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no sequences"),
        ("watchfloor_sequences: true\n", "no sequences"),
        ("watchfloor_sequences: 1\nwatchfloor_sequences: 1\n", "twice"),
        (BOMB, "anchors"),
        ("<<: {watchfloor_sequences: 1}\n", "merged"),
        ("watchfloor_sequences: 1\nextra: 1\n", "'extra' is not known"),
        ("!!python/object:os.system {}\n", "not YAML"),
        ("[" * 100_000, "Not YAML"),
        ("x" * 300_000, "bytes"),
        (GOOD.replace("same: path", "same: moon"), "same or tighten"),
        (GOOD.replace("tighten: NONE", "tighten: FULL"), "same or tighten"),
        (GOOD.replace("action: read", "action: think"), "action 'think'"),
        (GOOD.replace("SEND_EMAIL", "SEND_LOVE"), "SEND_LOVE"),
        (GOOD.replace("{scopes: [SEND_EMAIL]}", "{}"), "empty"),
        (GOOD.replace("[SEND_EMAIL]", "[]"), "not a list of texts"),
        (GOOD.replace("**/exports/**", "exports/**"), "not absolute"),
        (GOOD.replace("name: mails", "name: reads"), "name of its own"),
        (GOOD.replace("name: export-then-mail", "name: Export"), "no name"),
        (GOOD.replace("any: [{action", "some: [{action"), "'some' is not known"),
        (GOOD + GOOD[GOOD.index("  - name") :], "twice"),
    ],
)
def test_what_is_not_certain_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        read_sequences(text.encode())
    assert words.lower() in str(caught.value).lower()


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(UsageProblem):
        read_sequences(b"\xff\xfe")


def test_a_built_in_one_is_left_out_by_name_and_never_hidden() -> None:
    built_in = policy_data.sequences()
    left = in_force(read_sequences(b"watchfloor_sequences: 1\nwithout: [write-then-verify]\n"), built_in)
    assert [pattern.name for pattern in left] == ["credential-then-network", "listing-then-elevation"]
    for text in ("without: [nothing]\n", GOOD.partition("watchfloor_sequences: 1\n")[2].replace("export-then-mail", "write-then-verify")):
        with pytest.raises(UsageProblem):
            in_force(read_sequences(f"watchfloor_sequences: 1\n{text}".encode()), built_in)
