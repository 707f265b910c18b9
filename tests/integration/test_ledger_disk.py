"""Faults 1 and 2 for the ledger: killed in mid-write, full disk. What was acknowledged is there, the ratchet never lower."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from console.domain.network import Sensitivity
from console.ledger.store import Ledger
from tests.fakes.killed_writer import killed_in_mid_write
from tests.fakes.private_disk import run_on_a_small_disk

pytestmark = pytest.mark.fault

_WRITER = """
from console.domain.network import Sensitivity
from console.ledger.spending import SpendSample
from console.ledger.store import Ledger
ledger = Ledger(folder / "ledger.db")
def work(number):
    i = 0
    while True:
        i += 1
        if i == 5:
            ledger.raise_sensitivity(f"c{number}", Sensitivity.SECRET, "d", "s", 1.0)
            acknowledge(f"secret c{number}")
        ledger.raise_sensitivity(f"c{number}", Sensitivity.PUBLIC, "d", "s", 1.0)
        ledger.add_spends([SpendSample("a", "a", 1.0, 0.5, 1)])
        acknowledge("spend")
for n in range(3):
    threading.Thread(target=work, args=(n,)).start()
"""


def test_sigkill_in_mid_write_loses_nothing_acknowledged(tmp_path: Path, full_counts: bool) -> None:
    chance = random.Random(11)
    spends, secret = 0, set()
    for _ in range(100 if full_counts else 3):
        lines = killed_in_mid_write(tmp_path, _WRITER, chance.uniform(0.02, 0.2))
        spends += lines.count("spend")
        secret |= {line.split()[1] for line in lines if line.startswith("secret")}
        ledger = Ledger(tmp_path / "ledger.db")
        with ledger.reading() as connection:
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
        assert ledger.spend_since(0).tokens >= spends
        assert all(ledger.level(context) is Sensitivity.SECRET for context in secret)
        ledger.close()
    assert spends > 0


def test_a_full_disk_refuses_in_words_and_recovers(tmp_path: Path) -> None:
    said = run_on_a_small_disk(
        tmp_path / "disk",
        """
        from console.domain.errors import NotRecorded
        from console.domain.network import Sensitivity
        from console.ledger.store import Ledger
        ledger = Ledger(disk / "ledger.db")
        fill()
        acked, words = 0, ""
        try:
            while True:
                ledger.raise_sensitivity("c", Sensitivity.CONFIDENTIAL, "x" * 500, "s", 1.0)
                acked += 1
        except NotRecorded as error:
            words = str(error)
        with ledger.reading() as connection:
            events = connection.exec_driver_sql("SELECT count(*) FROM sensitivity_events").scalar()
        said = {"acked": acked, "words": words, "events": events, "level": ledger.level("c")}
        empty()
        ledger.raise_sensitivity("c", Sensitivity.SECRET, "d", "s", 1.0)
        said["after"] = ledger.level("c")
        with ledger.reading() as connection:
            said["integrity"] = connection.exec_driver_sql("PRAGMA integrity_check").scalar()
        ledger.close()
        print(json.dumps(said))
        """,
    )
    assert "full" in said["words"] and "x" * 20 not in said["words"]
    assert said["events"] == said["acked"]
    assert said["level"] == ("CONFIDENTIAL" if said["acked"] else "PUBLIC")
    assert said["after"] == "SECRET" and said["integrity"] == "ok"
