"""Processes that share the tests: each test is run once, what failed is told as if by one, and nobody who dies is overlooked."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONFTEST = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from tests.workers import note_failed, side_by_side

def pytest_runtestloop(session):
    side_by_side(session, 3, Path(__file__).parent, lambda: None)
    note_failed(session, Path("failed"))
    return True
"""
GOOD = """
import os, pathlib, time, pytest

@pytest.mark.parametrize("number", range(3))
def test_good(number):
    with open("ran", "a") as file:
        file.write(f"{pathlib.Path(__file__).name} {number} {os.getpid()}\\n")
    time.sleep(0.1)
"""


def run(folder: Path, *argv: str, **files: str) -> tuple[int, str]:
    (folder / "conftest.py").write_text(CONFTEST)
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--rootdir={folder}", *argv, str(folder)]
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_each_is_run_once_and_a_file_by_one(tmp_path: Path) -> None:
    code, said = run(tmp_path, a=GOOD, b=GOOD, c=GOOD, d=GOOD)
    assert code == 0 and "12 passed" in said and "100%" in said, said
    ran = [line.split() for line in (tmp_path / "ran").read_text().splitlines()]
    assert len(ran) == 12 and len({(name, number) for name, number, _ in ran}) == 12
    assert len({(name, pid) for name, _, pid in ran}) == 4 and len({pid for _, _, pid in ran}) > 1


def test_what_fails_what_dies_and_what_nobody_ran_is_told(tmp_path: Path) -> None:
    fails = "def test_bad():\n    print('printed before')\n    assert 'left' == 'right'\n"
    skips = "import pytest\n@pytest.mark.skip(reason='rest')\ndef test_not(): pass"
    dies = "import os, sys\ndef test_last_words():\n    os._exit(3)\ndef test_never(): pass"
    ends = "import pytest\n@pytest.fixture(scope='session', autouse=True)\ndef whole():\n    yield\n    assert 0, 'at the very end'\n"
    code, said = run(tmp_path, "-rs", a=GOOD, b=fails + skips, c=dies, d=ends + "def test_quick(): pass")
    assert code == 1, said
    for words in ("test_bad", "assert 'left' == 'right'", "printed before", "rest", "ended with 3", "test_last_words", "test_never"):
        assert words in said, (words, said)
    assert "no process reported its end" in said and "at the very end" in said, said
    assert "4 passed, 1 skipped, 1 error" in said and "4 failed" in said, said
    assert not (tmp_path / "failed").exists(), "a process died: nothing is run again"


def test_what_failed_is_noted_for_a_second_run(tmp_path: Path) -> None:
    fails = "import pytest\n@pytest.mark.parametrize('n', ['a b', '-x'])\ndef test_bad(n): assert n == 'left'\n"
    broken = "import pytest\n@pytest.fixture\ndef bad(): assert 0\ndef test_never(bad): pass\ndef test_good(): pass"
    code, said = run(tmp_path, a=fails, b=broken)
    assert code == 1 and "1 passed" in said, said
    found = set((tmp_path / "failed").read_text().splitlines())
    assert found == {"test_a.py::test_bad[a b]", "test_a.py::test_bad[-x]", "test_b.py::test_never"}


def test_at_the_first_failure_all_of_them_stop(tmp_path: Path) -> None:
    fails = "def test_bad(): assert 0"
    code, said = run(tmp_path, "-x", a=fails, **{f"z{number}": GOOD.replace("0.1", "0.4") for number in range(9)})
    assert code != 0 and "1 failed" in said and "stopping after 1 failures" in said, said
    assert len((tmp_path / "ran").read_text().splitlines()) < 27


def test_an_interruption_ends_all_of_them_though_they_have_much_to_say(tmp_path: Path) -> None:
    talks = "import pytest\n@pytest.mark.parametrize('n', range(4000))\ndef test_word(n):\n    print('x' * 2000)\n    assert n < 0\n"
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for name in "abc":
        (tmp_path / f"test_{name}.py").write_text(talks)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", str(tmp_path)]
    runs = subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert runs.stdout is not None
    while b"FFF" not in runs.stdout.readline():
        pass
    runs.send_signal(signal.SIGINT)
    said, _ = runs.communicate(timeout=60)  # one that was forked later held the other end of an earlier one's pipe: both for ever
    assert b"KeyboardInterrupt" in said and runs.returncode == 2
