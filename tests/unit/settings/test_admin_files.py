"""Which files of the administrator count, and what a bad one is refused with."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from console.settings.admin_files import MAX_BYTES, Refused, find_files, read_file, shown
from tests.fakes.instance import ROOT


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    folder = tmp_path / "etc"
    (folder / "conf.d").mkdir(parents=True)
    return folder


def make_fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def refusal(act: Callable[[], object]) -> Refused:
    with pytest.raises(Refused) as refused:
        act()
    return refused.value


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert find_files(tmp_path / "none") == []


def test_the_main_file_comes_first_then_the_drop_ins_by_name(etc: Path) -> None:
    for name in (
        "watchfloor.toml",
        "conf.d/20-b.toml",
        "conf.d/10-a.toml",
        "conf.d/.30-c.toml",
        "conf.d/README",
        "conf.d/40-d.toml.dpkg-old",
    ):
        (etc / name).touch()
    assert [str(path.relative_to(etc)) for path in find_files(etc)] == ["watchfloor.toml", "conf.d/10-a.toml", "conf.d/20-b.toml"]


def test_each_key_has_its_line(etc: Path) -> None:
    file = etc / "watchfloor.toml"
    file.write_text(
        '# spawn = 1\nlocked = [\n  "a",\n]\n\n[spawn]\nmax_depth = 2\n\n[budgets]\nday = {cost = 3}\n'
        '[network]\nnotice = """\nmax = 1\n"""\n'
    )
    lines = read_file(file).lines()
    assert lines[("locked",)] == 2 and lines[("spawn", "max_depth")] == 7
    assert lines[("budgets", "day")] == 10 and lines[("network", "notice")] == 12
    assert ("network", "max") not in lines
    file.write_bytes(b"heartbeat_s = 3\r\n\r\n[spawn]\r\nmax_depth = 2\r\n")
    assert read_file(file).lines() == {("heartbeat_s",): 1, ("spawn",): 3, ("spawn", "max_depth"): 4}


@pytest.mark.parametrize(
    ("spoil", "words", "remedy"),
    [
        (lambda file: os.chown(file, 65534, 0), "belongs to uid 65534, not to root", "chown root:root"),
        (lambda file: file.chmod(0o664), "can be written by other accounts", "chmod 0644"),
        (lambda file: file.chmod(0o646), "can be written by other accounts", "chmod 0644"),
        (lambda file: file.unlink() or file.mkdir(), "is a folder", "Put a plain file"),
        (make_fifo, "is no regular file", "Put a plain file"),
        (lambda file: file.unlink() or file.symlink_to("/dev/zero"), "is a symbolic link", "the file itself"),
        (lambda file: file.unlink() or file.symlink_to("elsewhere.toml"), "is a symbolic link", "the file itself"),
        (lambda file: os.truncate(file, 100 * 1024 * 1024), "is longer than 256 KiB", "Shorten"),
        (lambda file: file.write_bytes(b"# one\n# \xff\n"), ":2: is not UTF-8", "UTF-8"),
        (lambda file: file.write_text("spawn = {\n"), "is not TOML", "Fix that line"),
        (lambda file: file.write_text("a = " + "[" * 5000), "", ""),
        (lambda file: file.write_text("a = " + "1" * 5000), "a number has too many digits.", "Fix that line"),
        (lambda file: file.write_bytes(b"\xef\xbb\xbfa = 1\n"), ":1: begins with a byte order mark", "without"),
    ],
)  # fmt: skip
def test_a_file_that_does_not_count_is_an_error_that_names_it(etc: Path, spoil: Callable[[Path], object], words: str, remedy: str) -> None:
    file = etc / "conf.d" / "10-a.toml"
    file.write_text("heartbeat_s = 10\n")
    assert read_file(file).data == {"heartbeat_s": 10}
    spoil(file)
    assert find_files(etc) == [file]
    refused = refusal(lambda: read_file(file))
    assert words in refused.what and refused.what.startswith(str(file)) and remedy in refused.remedy


def test_a_folder_that_another_account_can_write_is_an_error(etc: Path) -> None:
    (etc / "conf.d").chmod(0o777)
    assert "conf.d: can be written by other accounts" in refusal(lambda: find_files(etc)).what
    (etc / "conf.d").chmod(0o755)
    os.chown(etc, 65534, 0)
    assert f"{etc}: belongs to uid 65534" in refusal(lambda: find_files(etc)).what
    os.chown(etc, 0, 0)
    (etc / "conf.d").rmdir()
    (etc / "conf.d").symlink_to("/tmp")  # noqa: S108
    assert "conf.d: is not a folder" in refusal(lambda: find_files(etc)).what


def test_broken_toml_has_line_and_column_and_a_duplicate_is_called_one(etc: Path) -> None:
    file = etc / "watchfloor.toml"
    file.write_text("a = 1\nb = \n")
    fault = refusal(lambda: read_file(file)).faults[0]
    assert (fault.line, fault.column) == (2, 5) and fault.place == f"{file}:2:5"
    file.write_text("[spawn]\nmax_depth = 1\nmax_depth = 2\n")
    assert "there twice" in refusal(lambda: read_file(file)).what
    file.write_text("[spawn]\n[spawn]\n")
    assert "there twice" in refusal(lambda: read_file(file)).what


def test_a_long_statement_costs_no_time(etc: Path) -> None:
    file = etc / "watchfloor.toml"
    file.write_text("a = [\n" + "1,\n" * (MAX_BYTES // 4) + "]\n")
    assert len(read_file(file).data["a"]) == MAX_BYTES // 4 and read_file(file).lines() == {}


def test_a_name_of_any_bytes_becomes_text() -> None:
    assert shown(Path(os.fsdecode(b"/etc/\xff\x1b.toml"))).encode() == b"/etc/\\xff\x1b.toml"


def test_only_root_may_name_another_folder() -> None:
    code = "import os, sys; from console.settings.admin_files import folder; os.setuid(int(sys.argv[1])); print(folder())"
    env = os.environ | {"WATCHFLOOR_ETC": "/somewhere"}

    def said(uid: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", code, uid], cwd=ROOT, env=env, capture_output=True, text=True, check=True
        ).stdout.strip()

    assert (said("0"), said("65534")) == ("/somewhere", "/etc/watchfloor")
