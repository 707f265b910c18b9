"""The launch ladder: the firmest rung that is there is taken, and no rung without a kernel proof looks like one with it."""

from __future__ import annotations

import pytest

from console.domain.sandbox import Finding, LaunchRung, RungName, build_ladder, default_rung

YES = Finding(True, "it was done")
NO_CGROUP = Finding(False, "mkdir: Permission denied", ("linger", "root"))
NO_PIDS = Finding(False, "bwrap: not installed", ("apt install bubblewrap", "root"))


def by_name(ladder: tuple[LaunchRung, ...]) -> dict[RungName, LaunchRung]:
    return {rung.name: rung for rung in ladder}


@pytest.mark.parametrize(
    ("cgroup", "pids", "other_uid", "expected", "best_effort"),
    [
        (YES, YES, True, RungName.CGROUP_AND_PIDS, False),
        (YES, YES, False, RungName.CGROUP_AND_PIDS, False),
        (YES, NO_PIDS, True, RungName.CGROUP, False),
        (YES, NO_PIDS, False, RungName.CGROUP, True),  # the owner of the tree can walk out of it
        (NO_CGROUP, YES, False, RungName.PIDS, False),
        (NO_CGROUP, NO_PIDS, False, RungName.SUBREAPER, True),
        (NO_CGROUP, NO_PIDS, True, RungName.SUBREAPER, True),
    ],
)
def test_the_firmest_rung_is_taken(cgroup: Finding, pids: Finding, other_uid: bool, expected: RungName, best_effort: bool) -> None:
    rung = default_rung(build_ladder(cgroup, pids, other_uid=other_uid))
    assert (rung.name, rung.best_effort) == (expected, best_effort)


def test_the_last_rung_is_always_there_and_never_proves_anything() -> None:
    for cgroup in (YES, NO_CGROUP):
        for pids in (YES, NO_PIDS):
            last = build_ladder(cgroup, pids, other_uid=True)[-1]
            assert last.name is RungName.SUBREAPER and last.available and last.best_effort and "BEST EFFORT" in last.note


def test_a_missing_rung_says_what_was_tried_and_what_would_raise_it() -> None:
    ladder = by_name(build_ladder(NO_CGROUP, NO_PIDS, other_uid=False))
    assert ladder[RungName.CGROUP_AND_PIDS].tried == ("mkdir: Permission denied", "bwrap: not installed")
    assert ladder[RungName.CGROUP_AND_PIDS].raised_by == ("linger", "root", "apt install bubblewrap")
    assert ladder[RungName.CGROUP].raised_by == ("linger", "root")
    assert ladder[RungName.PIDS].raised_by == ("apt install bubblewrap", "root")
    assert by_name(build_ladder(YES, NO_PIDS, other_uid=True))[RungName.CGROUP].raised_by == ()
