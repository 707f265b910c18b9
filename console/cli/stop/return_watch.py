"""``--wait-watch``: the receipt once its return watch is over. No client in here until it is used: panic must start at once."""

from __future__ import annotations

import time
from dataclasses import replace

from console.cli.terminal import out
from console.domain.errors import ConsoleError
from console.domain.kill import Receipt
from console.domain.verdict import judged
from console.killswitch.kill.receipt import read_receipt
from console.killswitch.kill.return_watch import unwatched
from console.settings.places import Places

LOOK_S = 1.0
LAST_S = 2.0
"""A return of the last moment is killed, confirmed and recorded in that time."""


def after_watch(places: Places, receipt: Receipt, *, quiet: bool) -> Receipt:
    """Waits until the watch is over; what is known of returns then is in the receipt. Works with the supervisor down."""
    from console.api.client.api_client import ApiClient

    if not receipt.watch_until:
        return receipt
    if not quiet:
        out.note(f"watching until {time.strftime('%H:%M:%S', time.localtime(receipt.watch_until))} for processes that run again")
    while (left := receipt.watch_until + LAST_S - time.time()) > 0:
        time.sleep(min(LOOK_S, left))
    local = read_receipt(places.guard_dir, receipt.kill_id)
    try:
        with ApiClient(places, timeout_s=5) as client:
            found = client.receipt(receipt.kill_id)
            receipt = found if found.complete else receipt
    except ConsoleError:
        if local is not None:
            receipt = replace(receipt, amended=local.amended, survivors=local.survivors, targets=local.targets)
    if local is not None:  # the supervisor may be a moment behind it
        receipt = judged(replace(receipt, returns=local.returns, not_watched=local.not_watched))
    gap = unwatched(places.guard_dir, receipt.kill_id)  # no guard came to say so
    return judged(replace(receipt, not_watched=(*receipt.not_watched, gap))) if gap is not None else receipt
