"""What was carried over and what was lost."""

from console.policy.carried import Carried, Lost


def test_rules_once_and_losses_with_their_reason() -> None:
    made = Carried()
    made.put("deny", "shell(curl:*)")
    made.put("deny", "shell(curl:*)")
    made.lose("x", "y")
    assert made.settings() == {"permissions": {"deny": ["shell(curl:*)"]}} and made.lost == [Lost("x", "y")]
