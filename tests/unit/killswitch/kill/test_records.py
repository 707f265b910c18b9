"""What a guard knew of connections is known to the next one, and nothing that is lost or changed is taken for knowledge."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from console.killswitch.kill.connections import Connections
from console.killswitch.kill.records import FILE, Kept, Looks, Record, record_of, ticks_now
from console.killswitch.kill.snapshot import Process
from tests.fakes.looked_at import LookedAt, looked_at


def next_guard(world: LookedAt, folder: Path) -> Connections:
    looks = Looks(folder)
    made = world.looking(looks)
    made.records.update(looks.of([one.entry for one in world.talkers.values()]))
    return made


def test_the_next_guard_knows_open_and_closed_connections_and_counts_none_twice(tmp_path: Path) -> None:
    with looked_at() as world, socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        one = world.looking(Looks(tmp_path))
        agent = world.agent("a-1")
        agent.do(f"tcp {first.getsockname()[1]}")
        one.look()
        agent.do("close")
        agent.do(f"tcp {second.getsockname()[1]}")
        one.look()
        one.look()
        before = one.records["a-1"]
        other = next_guard(world, tmp_path)
        known = other.records["a-1"]
        assert (known.uids, known.reach, known.start_ticks, known.namespaces.keys(), known.why_late) == (
            before.uids,
            before.reach,
            before.start_ticks,
            before.namespaces.keys(),
            "",
        )
        other.look()
        counts = [(k.remote, k.peer, k.n) for k in before.kept.values()]
        assert len(counts) == 2 and [(k.remote, k.peer, k.n) for k in known.kept.values()] == counts
        one.end()
        other.end()


def kept_file(folder: Path, *, ticks: int) -> Record:
    """A guard's last look, at ``ticks``, of an agent that has been there for long."""
    peer = Process(4242, 7, "/usr/bin/x", 0)
    record = Record(
        "a-1", ticks - 90_000, ticks - 90_000, ticks, reach="it shares this host's network", looks=1, unread={5}, entry=(1, 2, 3)
    )
    record.kept["tcp", "127.0.0.1:80", 4242, 7] = Kept("tcp", "l", "127.0.0.1:80", peer, 0, "", 9, 1.5, 2)
    looks = Looks(folder)
    looks.write([record], ticks)
    looks.close()
    return record


def records_after(folder: Path, now: int) -> dict[str, Record]:
    ticks, rows = Looks(folder).read()
    return {row["agent_id"]: record_of(row, ticks, now) for row in rows}


def test_a_record_comes_back_whole_and_says_how_long_no_guard_looked(tmp_path: Path) -> None:
    now = ticks_now()
    made = kept_file(tmp_path, ticks=now - 100)
    [soon, late] = (records_after(tmp_path, at)["a-1"] for at in (now, now + 900))
    assert (soon.kept, soon.unread, soon.entry, soon.why_late) == (made.kept, {5}, (1, 2, 3), "")
    assert "10 s before another guard took over" in late.why_late


def change(of: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def act(file: Path) -> None:
        stamp, _, text = file.read_text().partition("\n")
        body = json.loads(text)
        of(body)
        file.write_text(f"{stamp}\n{json.dumps(body)}")

    return act


def behind_a_link(file: Path) -> None:
    file.rename(file.with_name("other"))
    file.symlink_to("other")


DAMAGE: dict[str, Callable[[Path], object]] = {
    "taken away": lambda file: file.unlink(),
    "cut": lambda file: file.write_bytes(file.read_bytes()[:-9]),
    "only a stamp": lambda file: file.write_bytes(file.read_bytes()[:21]),
    "a link": behind_a_link,
    "another boot": change(lambda body: body.update(boot_id="another")),
    "another agent": change(lambda body: body["agents"][0].update(entry=[1, 1, 1])),
    "another program's row": change(lambda body: body["agents"][0].update(kept=[[1]])),
    "no rows": change(lambda body: body.update(agents=7)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_not_what_a_guard_wrote_reads_as_never_looked_at(tmp_path: Path, damage: str) -> None:
    with looked_at() as world:
        one = world.looking(Looks(tmp_path))
        world.agent("a-1")
        one.look()
        one.end()
        assert next_guard(world, tmp_path).records.keys() == {"a-1"}
        DAMAGE[damage](tmp_path / FILE)
        assert next_guard(world, tmp_path).records == {}


def test_a_look_that_cannot_be_kept_leaves_no_older_one(tmp_path: Path) -> None:
    looks = Looks(tmp_path)
    looks.write([], 1)
    (tmp_path / f".{FILE}.draft").mkdir()
    looks.write([Record("a-1", 1, 1, 1, looks=1)], 2)
    assert Looks(tmp_path).read() == (0, []) and not (tmp_path / FILE).exists()
    looks.close()
