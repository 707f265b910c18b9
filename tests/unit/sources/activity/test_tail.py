"""Files that grow, shrink, are replaced, are not files at all."""

from __future__ import annotations

import os
from pathlib import Path

from console.domain.activity import FilePlace
from console.sources.activity import tail as activity_tail
from console.sources.activity.tail import LINE_MAX, STEP_MAX, Tailed, signature, tail

ME = os.getuid()


def all_of(path: Path, place: FilePlace | None = None, **more: int) -> tuple[list[bytes], Tailed]:
    lines: list[bytes] = []
    while True:
        found = tail(str(path), place, ME, **more)
        lines += found.lines
        place = found.place
        if not found.more:
            return lines, found


def test_whole_lines_only_and_each_once(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"one\n\ntwo\nthr")
    first = tail(str(file), None, ME)
    assert first.lines == [b"one", b"two"] and not first.more
    with file.open("ab") as out:
        out.write(b"ee\n")
    second = tail(str(file), first.place, ME)
    assert second.lines == [b"three"] and not second.again
    before = signature(str(file))
    assert before == signature(str(file)) != signature(str(tmp_path / "gone"))


def test_truncated_replaced_and_rewritten_files_are_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"one\ntwo\n")
    place = tail(str(file), None, ME).place
    file.write_bytes(b"1\n")
    found = tail(str(file), place, ME)
    assert found.again and found.lines == [b"1"]
    other = tmp_path / "g"
    other.write_bytes(b"A\nB\nC\n")
    other.replace(file)
    found = tail(str(file), found.place, ME)
    assert found.again and found.lines == [b"A", b"B", b"C"]
    with file.open("r+b") as out:
        out.write(b"X\nY\nZ\nmore\n")
    found = tail(str(file), found.place, ME)
    assert found.again and found.lines == [b"X", b"Y", b"Z", b"more"]


def test_a_file_that_is_gone_a_link_a_pipe_a_folder_and_anothers_file_are_not_read(tmp_path: Path) -> None:
    file = tmp_path / "f"
    assert tail(str(file), None, ME).is_gone
    file.write_bytes(b"x\n")
    (tmp_path / "link").symlink_to(file)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "."):
        found = tail(str(tmp_path / name), None, ME)
        assert found.problem and not found.lines
    assert "belongs to uid" in tail(str(file), None, ME + 1).problem
    assert tail("/a\0b", None, ME).problem
    assert signature("/a\0b") is None


def test_a_line_without_end_is_passed_over_and_said(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"a\n" + b"x" * (LINE_MAX * 2) + b"tail\nb\n")
    lines, found = all_of(file)
    assert lines == [b"a", b"b"]
    with file.open("ab") as out:
        out.write(b"y" * (LINE_MAX + 10))
    found = tail(str(file), found.place, ME)
    assert found.too_long == 1 and not found.lines
    with file.open("ab") as out:
        out.write(b"end\nc\n")
    lines, found = all_of(file, found.place)
    assert lines == [b"c"] and found.too_long == 0


def test_a_long_line_that_can_be_read_is(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"z" * (STEP_MAX + 100) + b"\nb\n")
    lines, found = all_of(file)
    assert [len(line) for line in lines] == [STEP_MAX + 100, 1] and not found.too_long


def test_a_long_history_is_read_from_its_end_a_part_at_a_time(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"".join(b"%06d" % n + b"-" * 93 + b"\n" for n in range(50_000)))
    lines, found = all_of(file, first_max=3_000_050)
    assert len(lines) == 30_000 and lines[-1].startswith(b"049999") and found.left_out == 0
    first = tail(str(file), None, ME, first_max=3_000_050)
    assert first.left_out == 2_000_000 - 50 and first.more and len(first.lines) * 100 <= activity_tail.STEP_MAX


def test_a_file_that_was_empty_and_is_long_when_it_is_looked_at_again_is_read_from_its_end(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"")
    place = tail(str(file), None, ME).place
    file.write_bytes(b"x" * 99 + b"\n" + b"y" * 49 + b"\nz\n")
    found = tail(str(file), place, ME, first_max=60)
    assert found.left_out == 92 and found.lines == [b"y" * 49, b"z"] and not found.again
    assert tail(str(file), found.place, ME, first_max=60).place == found.place, "and nothing twice"


def test_what_stands_before_a_place_is_known_again_across_parts(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"one\n")
    place = tail(str(file), None, ME).place
    with file.open("ab") as out:
        out.write(b"two\n")
    place = tail(str(file), place, ME).place
    with file.open("r+b") as out:
        out.write(b"ONE\n")
    found = tail(str(file), place, ME)
    assert found.again and found.lines == [b"ONE", b"two"]
