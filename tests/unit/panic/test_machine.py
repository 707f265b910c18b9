"""The panic control without a window: what each order of presses, releases and late looks comes to, on a clock of the test's own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from console.domain.guard import HELD_GRACE_S, HOLD_S
from console.panic.control import plate_words
from console.panic.machine import AGAIN_S, ARMED_S, CHECK_S, PanicMachine, progress


class Port:
    """Writes down what it is told; answers at once, later, or with a silence."""

    def __init__(self, answers: bool = True) -> None:
        self.told: list[str] = []
        self.answers = answers
        self.thaws = True
        self.held: list[float] = []
        self.late: list[Callable[[str | None], None]] = []

    def hold(self, held_s: float, done: Callable[[str | None], None]) -> None:
        self.told.append("hold")
        self.held.append(held_s)
        if self.answers:
            done("h-1")
        else:
            self.late.append(done)

    def let_go(self, hold_id: str, done: Callable[[bool], object]) -> None:
        self.told.append(f"let_go {hold_id}")
        done(self.thaws)

    def press(self) -> None:
        self.told.append("press")

    def make_sure(self) -> None:
        self.told.append("make sure")

    def without_guard(self) -> None:
        self.told.append("without guard")


class Bench:
    """A machine with its clock; ``at`` moves the clock and looks at what is due, as a window's timer does."""

    def __init__(self, answers: bool = True, start: float = 1000.0) -> None:
        self.now = start
        self.port = Port(answers)
        self.it = PanicMachine(self.port, lambda: self.now)
        self.it.set_guard(True)

    @property
    def told(self) -> list[str]:
        return self.port.told

    @property
    def state(self) -> str:
        return self.it.state.value

    def wait(self, seconds: float) -> None:
        """Time passes; the timer comes in time."""
        end = self.now + seconds
        while self.it.due is not None and self.it.due <= end:
            self.now = max(self.now, self.it.due)
            self.it.tick()
        self.now = end

    def blocked(self, seconds: float) -> None:
        """Time passes, and nothing is handled."""
        self.now += seconds

    def armed(self) -> Bench:
        self.it.arm()
        return self


def test_a_press_on_the_closed_guard_does_nothing() -> None:
    bench = Bench()
    bench.it.press_down()
    bench.it.press_up()
    assert bench.told == [] and bench.state == "ready"


def test_the_guard_closes_by_itself() -> None:
    bench = Bench().armed()
    bench.wait(ARMED_S - 0.1)
    assert bench.state == "armed"
    bench.wait(0.2)
    assert bench.state == "ready" and bench.told == [] and bench.it.due is None


def test_the_time_until_it_locks_is_told() -> None:
    bench = Bench()
    assert bench.it.left_s == 0.0
    bench.it.arm()
    bench.wait(1.2)
    assert abs(bench.it.left_s - 3.8) < 0.01
    shown = plate_words(bench.it, 3, 0, 0)
    assert (shown.head, shown.line) == ("HOLD TO KILL", "3 agents · locks in 4 s") and abs(shown.share - 0.76) < 0.01
    bench.wait(4.0)
    assert bench.it.left_s == 0.0 and plate_words(bench.it, 3, 0, 0).head == "PANIC"


def test_freeze_goes_out_at_the_press() -> None:
    bench = Bench().armed()
    bench.it.press_down()
    assert bench.told == ["hold"] and bench.state == "holding"


def test_letting_go_early_thaws() -> None:
    bench = Bench().armed()
    bench.it.press_down()
    bench.wait(0.3)
    bench.it.press_up()
    assert bench.told == ["hold", "let_go h-1"]
    assert bench.state == "again" and bench.it.note == "Released at 0.3 s: resumed"
    bench.wait(10)
    assert bench.told == ["hold", "let_go h-1"], "no kill may follow"
    assert bench.state == "ready" and bench.it.note == ""


def test_a_thaw_that_the_guard_refused_is_not_called_one() -> None:
    bench = Bench().armed()
    bench.port.thaws = False
    bench.it.press_down()
    bench.it.press_up()
    assert bench.it.note == "Released at 0.0 s: NOT resumed"


def test_the_hold_kills_and_the_guard_does_it() -> None:
    bench = Bench().armed()
    bench.it.press_down()
    bench.wait(HOLD_S)
    assert bench.state == "killing"
    bench.it.press_up()
    assert bench.told == ["hold"], "the guard kills by itself, a release is too late"
    bench.it.set_kill(True, True)
    bench.it.set_kill(False, True)
    assert bench.state == "killed"
    bench.wait(10)
    assert bench.told == ["hold"]


def test_a_guard_that_says_nothing_after_the_hold_is_asked() -> None:
    bench = Bench().armed()
    bench.it.press_down()
    bench.wait(HOLD_S + CHECK_S)
    assert bench.told == ["hold", "make sure"]


def test_a_second_press_kills_at_once() -> None:
    bench = Bench().armed()
    bench.it.press_down()
    bench.it.press_up()
    bench.it.press_down()
    assert bench.told == ["hold", "let_go h-1", "press"] and bench.state == "killing"


def test_the_second_press_must_come_in_time() -> None:
    bench = Bench().armed()
    bench.it.press_down()
    bench.it.press_up()
    bench.wait(AGAIN_S)
    bench.it.press_down()
    assert "press" not in bench.told and bench.state == "ready"


def test_a_silent_guard_is_replaced_at_the_end_of_the_hold() -> None:
    bench = Bench(answers=False).armed()
    bench.it.press_down()
    bench.port.late[0](None)
    assert not bench.it.guard_alive and bench.told == ["hold"]
    bench.wait(HOLD_S)
    assert bench.told == ["hold", "without guard"]


def test_a_silence_that_shows_only_after_the_hold_is_replaced_too() -> None:
    bench = Bench(answers=False).armed()
    bench.it.press_down()
    bench.wait(HOLD_S)
    bench.port.late[0](None)
    assert bench.told == ["hold", "without guard"]
    bench.wait(10)
    assert bench.told == ["hold", "without guard"]


def test_a_late_hold_answer_after_letting_go_is_let_go() -> None:
    bench = Bench(answers=False).armed()
    bench.it.press_down()
    bench.it.press_up()
    assert bench.it.note == "Released at 0.0 s", "nothing is known of a thaw yet"
    bench.port.late[0]("h-9")
    assert bench.told == ["hold", "let_go h-9"] and bench.it.note == "Released at 0.0 s: resumed"


def test_letting_go_of_what_no_guard_heard_says_so() -> None:
    bench = Bench(answers=False).armed()
    bench.it.press_down()
    bench.it.press_up()
    bench.port.late[0](None)
    assert bench.told == ["hold"] and bench.it.note == "Released at 0.0 s: nothing was sent"


def test_a_kill_from_elsewhere_is_shown_and_rearm_makes_it_ready() -> None:
    bench = Bench()
    bench.it.set_kill(False, True)
    assert bench.state == "killed"
    bench.it.arm()
    bench.it.press_down()
    assert bench.told == []
    bench.it.set_kill(False, False)
    assert bench.state == "ready"


# --- a thread that was busy ---------------------------------------------------------------------------------------------


def test_a_whole_hold_that_waited_behind_a_busy_thread_kills() -> None:
    bench = Bench().armed()
    pressed = bench.now + 0.5
    bench.blocked(5.0)
    bench.it.press_down(pressed)
    assert bench.told == ["hold"] and bench.port.held == [HOLD_S - HELD_GRACE_S], "what is over of the hold counts"
    bench.it.press_up(pressed + 1.67)
    assert bench.state == "killing" and bench.told == ["hold"], "the guard kills within its grace"


def test_a_short_press_that_waited_behind_a_busy_thread_thaws() -> None:
    bench = Bench().armed()
    pressed = bench.now + 0.5
    bench.blocked(5.0)
    bench.it.press_down(pressed)
    bench.it.press_up(pressed + 0.3)
    assert bench.told == ["hold", "let_go h-1"] and bench.it.note == "Released at 0.3 s: resumed"


def test_what_is_still_held_when_the_thread_wakes_kills_after_the_grace() -> None:
    bench = Bench().armed()
    pressed = bench.now + 0.5
    bench.blocked(3.0)
    bench.it.press_down(pressed)
    assert bench.state == "holding"
    bench.wait(HELD_GRACE_S)
    assert bench.state == "killing"


def test_a_release_that_was_handled_late_ends_the_hold_that_it_ended() -> None:
    bench = Bench().armed()
    bench.it.press_down(bench.now)
    released = bench.now + 1.67
    bench.blocked(5.0)
    bench.it.press_up(released)
    assert bench.state == "killing" and bench.told == ["hold"]


def test_a_late_timer_lets_a_waiting_release_be_handled_first() -> None:
    bench = Bench(answers=False).armed()
    bench.it.press_down(bench.now)
    bench.port.late[0](None)
    released = bench.now + 0.3
    bench.blocked(5.0)
    bench.it.tick()
    assert bench.told == ["hold"], "a kill without the guard waits for what is already in the queue"
    bench.it.press_up(released)
    assert bench.state == "again" and bench.told == ["hold"]


def test_a_late_timer_without_a_release_kills_after_the_grace() -> None:
    bench = Bench(answers=False).armed()
    bench.it.press_down(bench.now)
    bench.port.late[0](None)
    bench.blocked(5.0)
    bench.it.tick()
    bench.wait(HELD_GRACE_S)
    assert bench.told == ["hold", "without guard"]


def test_a_press_within_the_armed_time_counts_though_it_is_handled_after_it() -> None:
    bench = Bench().armed()
    pressed = bench.now + ARMED_S - 1
    bench.blocked(ARMED_S + 3)
    bench.it.tick()
    bench.it.press_down(pressed)
    assert bench.told == ["hold"]


def test_a_press_after_the_armed_time_does_nothing_though_the_timer_was_late() -> None:
    bench = Bench().armed()
    bench.blocked(ARMED_S + 3)
    bench.it.press_down(bench.now - 1)
    assert bench.told == [] and bench.state == "ready"


def test_two_presses_that_waited_together_kill() -> None:
    bench = Bench().armed()
    first = bench.now + 0.5
    bench.blocked(5.0)
    bench.it.press_down(first)
    bench.it.press_up(first + 0.1)
    bench.it.press_down(first + 0.6)
    assert bench.told == ["hold", "let_go h-1", "press"]


def test_a_second_press_in_time_counts_though_it_is_handled_late() -> None:
    bench = Bench().armed()
    bench.it.press_down(bench.now)
    bench.wait(0.1)
    bench.it.press_up(bench.now)
    second = bench.now + 1.0
    bench.blocked(5.0)
    bench.it.tick()
    bench.it.press_down(second)
    assert bench.told == ["hold", "let_go h-1", "press"]


def test_a_second_press_too_late_does_not_kill_though_the_timer_was_late() -> None:
    bench = Bench().armed()
    bench.it.press_down(bench.now)
    bench.it.press_up(bench.now + 0.1)
    bench.blocked(5.0)
    bench.it.press_down(bench.now)
    assert "press" not in bench.told and bench.state == "ready"


@pytest.mark.parametrize(("pressed", "released"), [(None, None), (None, 1001.0), (1000.5, None), (1002.0, 1001.0)])
def test_without_two_plausible_moments_in_order_the_handling_is_measured(pressed: float | None, released: float | None) -> None:
    bench = Bench().armed()
    bench.wait(2.0)
    bench.it.press_down(pressed)
    bench.it.press_up(released)
    assert bench.it.note == "Released at 0.0 s: resumed"
    second = Bench().armed()
    second.wait(2.0)
    second.it.press_down(pressed if pressed is None else pressed + 1.5)
    second.blocked(0.9)
    second.it.press_up(released)
    assert second.state == "killing"


# --- several hands, and releases that are lost ----------------------------------------------------------------------------


def test_a_release_that_was_lost_leaves_one_hold_from_the_first_press() -> None:
    bench = Bench().armed()
    bench.it.press_down(bench.now, "mouse")
    bench.wait(0.5)
    bench.it.press_down(bench.now, "mouse")
    assert bench.told == ["hold"]
    bench.wait(HOLD_S - 0.5)
    assert bench.state == "killing"


def test_a_release_that_is_never_seen_ends_in_a_kill() -> None:
    bench = Bench().armed()
    bench.it.press_down(bench.now, "mouse")
    bench.wait(HOLD_S)
    assert bench.state == "killing"


def test_another_hand_neither_begins_again_nor_lets_go() -> None:
    bench = Bench().armed()
    bench.it.press_down(bench.now, "key 32")
    bench.wait(0.2)
    bench.it.press_down(bench.now, "mouse")
    bench.it.press_up(bench.now, "mouse")
    assert bench.told == ["hold"] and bench.state == "holding"
    bench.it.press_up(bench.now, "key 32")
    assert bench.told == ["hold", "let_go h-1"]


def test_what_is_lost_to_another_window_is_let_go_and_named() -> None:
    bench = Bench().armed()
    bench.it.press_down(bench.now, "key 32")
    bench.wait(0.4)
    bench.it.lose("Keyboard lost at", "mouse")
    assert bench.state == "holding"
    bench.it.lose("Keyboard lost at", "key 32")
    assert bench.it.note == "Keyboard lost at 0.4 s: resumed" and bench.state == "again"


def test_progress_is_that_of_the_hold_as_it_was_held() -> None:
    bench = Bench().armed()
    assert progress(bench.it) == 0.0
    bench.wait(1)
    bench.it.press_down(bench.now - 0.4)
    assert progress(bench.it) == pytest.approx(0.5)
    bench.wait(0.2)
    assert progress(bench.it) == pytest.approx(0.75)


def test_listeners_hear_of_every_change() -> None:
    bench, heard = Bench(), list[str]()
    bench.it.listen(lambda: heard.append(bench.state))
    bench.it.arm()
    bench.it.press_down()
    bench.it.gave_up("not now")
    assert heard == ["armed", "holding", "holding"]


def test_an_order_that_could_not_be_carried_out_is_not_shown_as_one() -> None:
    bench = Bench(answers=False).armed()
    bench.it.press_down()
    bench.port.late[0](None)
    bench.wait(HOLD_S)
    bench.it.gave_up("NOT killed (exit 1)")
    assert bench.state == "ready" and bench.it.note == "NOT killed (exit 1)"
