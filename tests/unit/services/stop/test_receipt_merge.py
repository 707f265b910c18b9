"""Several presses of one request are as good as the worst of them."""

from __future__ import annotations

from dataclasses import replace

from console.domain.agent import AgentId
from console.domain.errors import ExitCode
from console.domain.kill import Outcome, Receipt, Return, Step, StepName, StepStatus, Survivor, Target
from console.domain.verdict import verdict
from console.services.stop.service import DETAIL_LENGTH, ends, together


def receipt(kill_id: str, **statuses: StepStatus) -> Receipt:
    """A whole one; ``zero=StepStatus.UNKNOWN`` makes that step worse, with words of its own."""
    steps = tuple(
        Step(name, statuses.get(name, StepStatus.OK), 1.0, f"{name} of {kill_id}" if name in statuses else str(name)) for name in StepName
    )
    target = Target(f"a-{kill_id}", "managed", Outcome.PROVEN_ZERO, 2.0)
    return Receipt(
        kill_id, "i", f"a-{kill_id}", "r", "b", 1.0, verified_zero=True, steps=steps, targets=(target,), ms_total=9.0, complete=True
    )


def step(merged: Receipt, name: StepName) -> Step:
    return next(s for s in merged.steps if s.name is name)


def test_the_worst_of_each_step_counts_whichever_press_it_came_from() -> None:
    one = receipt("1", zero=StepStatus.UNKNOWN)
    two = receipt("2", zero=StepStatus.FAILED, evidence=StepStatus.UNKNOWN, remote=StepStatus.SKIPPED)
    for order in ([one, two], [two, one], [receipt("0"), one, two]):
        merged = together(order, [])
        assert [s.name for s in merged.steps] == list(StepName)
        assert step(merged, StepName.ZERO).status is StepStatus.FAILED
        assert step(merged, StepName.ZERO).detail.startswith("zero of 2; zero of 1")
        assert step(merged, StepName.EVIDENCE).status is StepStatus.UNKNOWN and "evidence of 2" in step(merged, StepName.EVIDENCE).detail
        assert step(merged, StepName.REMOTE).status is StepStatus.SKIPPED, "what was skipped is amber, so not ok"
        assert step(merged, StepName.LATCH) == Step(StepName.LATCH, StepStatus.OK, 1.0, "latch"), "the same words once"
        assert verdict(merged).exit_code is ExitCode.NOT_PROVEN


def test_a_step_that_one_receipt_lacks_is_unknown() -> None:
    whole, short = receipt("1"), receipt("2")
    short = replace(short, steps=tuple(s for s in short.steps if s.name is not StepName.EVIDENCE))
    merged = together([whole, short], [])
    assert step(merged, StepName.EVIDENCE).status is StepStatus.UNKNOWN and "the receipt 2" in step(merged, StepName.EVIDENCE).detail


def test_what_was_found_out_later_and_who_lived_is_in_it_whoever_said_it() -> None:
    survivor = Survivor("a-2", 7, "D", "nfs", "x", "why")
    one = replace(receipt("1"), amended=("one",), excluded=("left alone",), ms_total=3.0)
    two = replace(receipt("2"), amended=("two", "one"), excluded=("left alone",), survivors=(survivor,), verified_zero=False)
    merged = together([one, two], [])
    assert merged.amended == ("one", "two") and merged.survivors == (survivor,) and merged.excluded == ("left alone",)
    assert merged.ms_total == 9.0 and merged.scope == "a-1,a-2" and len(merged.targets) == 2
    assert verdict(merged).exit_code is ExitCode.NOT_PROVEN


def test_the_latest_moment_counts_and_none_only_where_none_is_known() -> None:
    one, two = receipt("1"), receipt("2")
    two = replace(two, steps=tuple(replace(s, ms={StepName.ZERO: 7.0, StepName.REMOTE: None}.get(s.name, s.ms)) for s in two.steps))
    assert step(together([one, two], []), StepName.ZERO).ms == 7.0 and step(together([one, two], []), StepName.REMOTE).ms == 1.0
    assert step(together([two], []), StepName.REMOTE).ms is None


def test_many_words_are_cut_and_the_worst_stay() -> None:
    said = [receipt("good")] + [
        replace(r, steps=tuple(replace(s, detail=f"{n} " + "w" * 90) for s in r.steps))
        for n, r in ((n, receipt(str(n))) for n in range(50))
    ]
    merged = together([*said, receipt("bad", zero=StepStatus.FAILED)], [])
    words = step(merged, StepName.ZERO).detail
    assert len(words) == DETAIL_LENGTH and words.startswith("zero of bad")


def test_whoever_still_starts_makes_it_unproven() -> None:
    merged = together([receipt("1")], [AgentId("a-9")])
    assert not merged.verified_zero and merged.targets[-1].agent_id == "a-9" and "still starting" in merged.targets[-1].evidence["why"]
    assert verdict(merged).exit_code is ExitCode.NOT_PROVEN


def test_an_end_is_confirmed_by_a_complete_receipt_that_nothing_speaks_against() -> None:
    again = Return("a-4", "s", 7, 70, 1, "tmux", "claude", 9.0, "marker", True, True, True, "why")
    receipts = [
        receipt("1"),
        receipt("2", second_look=StepStatus.UNKNOWN),
        replace(receipt("3"), survivors=(Survivor("a-3", 7, "D", "nfs", "x", "why"),)),
        replace(receipt("4"), returns=(again,)),
        replace(receipt("5"), complete=False),
        receipt("6", rotate=StepStatus.FAILED),
    ]
    assert [set(map(str, part)) for part in ends(receipts)] == [{"a-1", "a-6"}, {"a-2", "a-3", "a-4"}]
    assert set(map(str, ends([*receipts, replace(receipt("1"), kill_id="later", returns=(again,))])[0])) == {"a-6"}, "one doubt is enough"
    assert ends([]) == (frozenset(), frozenset())
