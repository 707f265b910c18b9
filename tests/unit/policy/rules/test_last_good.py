"""A broken file never loosens: the last good one stays in force, and with none everything is denied."""

from console.policy.rules.last_good import Kept

GOOD = b'{"permissions": {"deny": ["shell(curl:*)"]}}'


def test_nothing_good_was_ever_there() -> None:
    kept = Kept().offered(b"{")
    assert kept.settings is None and kept.good == b"" and "line 1" in kept.problem


def test_a_broken_one_changes_nothing_and_is_told() -> None:
    kept = Kept().offered(GOOD)
    for broken in (b"", b"{}", b'{"permissions": {"allow": []}}', b"\xff"):
        after = kept.offered(broken)
        assert after.settings == kept.settings and after.good == GOOD and after.problem
    assert kept.lost("it cannot be opened").problem == "it cannot be opened" and kept.lost("x").settings is not None


def test_the_next_good_one_is_in_force_and_the_alarm_ends() -> None:
    other = b'{"permissions": {"deny": ["shell(wget:*)"]}}'
    kept = Kept().offered(GOOD).offered(b"").offered(other)
    assert kept.problem == "" and kept.good == other
    assert kept.settings is not None and kept.settings.deny[0].words == ("wget",)
