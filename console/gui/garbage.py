"""Garbage is collected in the window's thread alone: a widget that ends in another thread takes the window down with it.

Python collects in whichever thread allocates, and the decoder's and the desktop's threads do too.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject

from console.gui.timers import every

ROUND_MS = 1_000


def collect_in_thread_of(owner: QObject) -> None:
    """From now on this process collects garbage in the thread of ``owner``, whenever that is due, and nowhere else."""
    gc.disable()
    every(owner, ROUND_MS, _round).start()


def spare() -> None:
    """What a whole reading brought stays: a round over 100,000 agents stops the window for 0.1 s and finds nothing.

    A newer reading replaces them by count of references; what the earlier one set aside is looked through again from then on.
    """
    gc.unfreeze()
    gc.collect(1)
    gc.freeze()


def _round() -> None:
    """Looks through the oldest generation that is due, and the younger ones with it, as Python would by itself."""
    due = [number for number, (count, limit) in enumerate(zip(gc.get_count(), gc.get_threshold(), strict=True)) if count > limit > 0]
    if due:
        gc.collect(max(due))
