"""What could be read in two ways is refused with its line, whosever file it is."""

import pytest

from console.domain.errors import UsageProblem
from console.policy.sequences.strict_yaml import read_yaml


def test_what_is_plain_is_read() -> None:
    assert read_yaml("a: [1, x]\nb: {c: true}\n", "") == {"a": [1, "x"], "b": {"c": True}}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\na: 2\n", "Line 2: 'a' is given twice"),
        ("a:\n  b: 1\n  'b': 2\n", "Line 3: 'b' is given twice"),
        ("a: &x 1\nb: *x\n", "Line 1: anchors"),
        ("b: *x\n", "Line 1: anchors"),
        ("a: {<<: {b: 1}}\n", "'<<' is given twice or merged"),
        ("? [a]\n: 1\n", "Line 1"),
        ("? {a: 1}\n: 1\n", "Line 1"),
        ("a: [1\n", "not YAML"),
        ("a: !!python/object/apply:os.system [x]\n", "not YAML"),
        ("a: 2026-13-45\n", "Not YAML that is read here"),
        ("[" * 10_000, "Not YAML that is read here"),
    ],
)
def test_what_is_not_certain_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageProblem, match=words) as caught:
        read_yaml(text, "Fix it.")
    assert caught.value.remedy
