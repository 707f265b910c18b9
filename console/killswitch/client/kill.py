"""Pressing from outside the guard: through it when it answers, without it, from the registry on disk, when it does not."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from console.domain.errors import ConsoleError, Denied, NotFound, TimedOut, Unreachable, UsageProblem
from console.domain.guard import SILENT_S
from console.domain.kill import Receipt, receipt_from_json
from console.killswitch.client.guard_client import GuardClient
from console.killswitch.kernel import processes
from console.killswitch.kernel.peers import inside_an_agent
from console.killswitch.kill.orders import claim
from console.killswitch.kill.receipt import new_kill_id, read_receipt


def press_and_wait(
    state_dir: Path, run_dir: Path, instance_id: str, scope: str | list[str], reason: str, by: str, timeout_s: float = 10.0
) -> Receipt:
    """Kills and waits for the local receipt.

    Denied when this process is an agent's; TimedOut when the kill went out and its receipt did not come in time.
    """
    done = place_order(state_dir, run_dir, instance_id, scope, reason, by)
    if isinstance(done, Receipt):
        return done
    client = GuardClient(run_dir / "guard.sock", timeout_s=SILENT_S)
    try:
        return _wait(client, state_dir / "guard", done, time.monotonic() + timeout_s)
    except Unreachable:  # it died, or was stopped, in the middle
        return press_without_guard(state_dir, run_dir, instance_id, scope, reason, by, kill_id=done)
    finally:
        client.close()


def press_as_member(
    state_dir: Path, run_dir: Path, instance_id: str, scope: str | list[str], reason: str, by: str, timeout_s: float = 10.0
) -> Receipt:
    """As ``press_and_wait``, for an account that cannot do the guard's work. Unreachable or TimedOut when the guard does not do it.

    The guard records the account, whatever ``by`` is.
    """
    kill_id = GuardClient(run_dir / "guard.sock").press(scope, reason, by, kill_id=new_kill_id())
    client = GuardClient(run_dir / "guard.sock", timeout_s=SILENT_S)
    try:
        return _wait(client, state_dir / "guard", kill_id, time.monotonic() + timeout_s)
    finally:
        client.close()


def place_order(
    state_dir: Path,
    run_dir: Path,
    instance_id: str,
    scope: str | list[str],
    reason: str,
    by: str,
    *,
    order: str = "",
    kill_id: str = "",
    sock: Path | None = None,
) -> str | Receipt:
    """Have one order with one id carried out: the id of the kill that the guard began, or the receipt of the one that was done here.

    A guard that is busy is asked whether it has the order. The same work is done here, under the same id, once no guard runs, or it stands
    still, or it did not take the order within ``SILENT_S``. A guard that comes to it later leaves it (kill/orders.py).

    Raises Denied when this process is an agent's.
    """
    kill_id = kill_id or new_kill_id()
    try:
        return GuardClient(sock or run_dir / "guard.sock").press(scope, reason, by, order, kill_id=kill_id)
    except (Unreachable, TimedOut):
        if not claim(run_dir, state_dir / "guard", kill_id):
            return kill_id  # the guard took it meanwhile
    return press_without_guard(state_dir, run_dir, instance_id, scope, reason, by, order, kill_id)


def _wait(client: GuardClient, guard_dir: Path, kill_id: str, deadline: float) -> Receipt:
    while time.monotonic() < deadline:
        try:
            is_done = bool(client.progress(kill_id)["done"])
        except TimedOut as error:
            raise Unreachable("The guard has said nothing since it took the kill.", "") from error
        except NotFound as error:  # it was restarted since; what was begun is carried to its end
            receipt = read_receipt(guard_dir, kill_id)
            if receipt is not None and receipt.complete:
                return receipt
            raise Unreachable("The guard that took the kill is gone.", "") from error
        if is_done:
            receipt = read_receipt(guard_dir, kill_id)
            if receipt is not None and receipt.complete:
                return receipt
            try:
                return receipt_from_json(json.loads(client.receipt_text(kill_id)))
            except (ValueError, KeyError, TypeError) as error:
                raise ConsoleError("The guard's receipt cannot be read.", f"See {guard_dir}.") from error
        time.sleep(0.02)
    raise TimedOut(f"Kill {kill_id} went out; its receipt is not complete yet.", "watchfloor receipt list shows it when it is.")


def press_without_guard(
    state_dir: Path,
    run_dir: Path,
    instance_id: str,
    scope: str | list[str],
    reason: str,
    by: str,
    order: str = "",
    kill_id: str = "",
) -> Receipt:
    """Carries a kill out in this process, by the guard's code. A kill of everything leaves the latch on disk.

    ``kill_id``: of an order that the guard did not take, or did not finish; empty: a new one.

    Raises Denied when this process is an agent's; whatever else goes wrong is in the receipt.
    """
    if inside_an_agent():
        raise Denied("An agent has no say here.", "")
    if not scope:
        raise UsageProblem('A kill names "all" or at least one agent.', "Name at least one agent.")
    is_all = scope in ("all", ["all"])
    # Loaded here and not above: a panic through a living guard must not wait until a whole kill is imported.
    from console.killswitch.client.without_guard import WithoutGuard
    from console.killswitch.kill.request import carry_out
    from console.killswitch.kill.targets import Order

    # A shell's limit is often 1,024 files, and each agent takes up to nine.
    processes.raise_descriptors()
    keeper = WithoutGuard(state_dir, run_dir, instance_id)
    ids = list(keeper.registry.held) if is_all else list(dict.fromkeys(scope))
    asked = Order(kill_id or new_kill_id(), "all" if is_all else ",".join(ids), reason[:500], by[:100], order[:200])
    kill = carry_out(keeper, asked, ids, (os.getpid(), os.getppid()))
    while not kill.is_done:  # nothing more is looked for and the receipt is on disk, or the disk has had its time
        kill.finished.wait(0.02)
    receipt = kill.receipt()
    keeper.close(kill)
    return receipt
