"""The runner of steps, a process without a sandbox around it: lists, pipes, redirects, and files that are not what was judged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from console.sandbox.calls import steps as runner

TOKEN = "0123"  # noqa: S105 - a word of the test's


@dataclass
class Ran:
    code: int
    out: bytes
    err: bytes
    told: list[dict[str, Any]]

    @property
    def refused(self) -> str:
        return next((str(one["refused"]) for one in self.told if "refused" in one), "")


def step(program: str, *words: str, cwd: Path, joined: str = "", redirects: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    path = program if "/" in program else str(shutil.which(program, path="/usr/bin:/bin"))
    seen = os.stat(path)  # noqa: PTH116
    return {
        "argv": [program, *words],
        "program": path,
        "file": [seen.st_dev, seen.st_ino, seen.st_ctime_ns],
        "cwd": str(cwd),
        "joined": joined,
        "redirects": list(redirects),
        "environment": [],
    }


def to(descriptor: int, path: Path | str, mode: str) -> dict[str, Any]:
    return {"descriptor": descriptor, "path": str(path), "mode": mode, "source": -1}


def copy(descriptor: int, source: int) -> dict[str, Any]:
    return {"descriptor": descriptor, "path": "", "mode": "copy", "source": source}


Run = Callable[..., Ran]


def _whole(fd: int) -> bytes:
    with open(fd, "rb") as file:  # noqa: PTH123 - a descriptor
        return file.read()


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def ran(*steps: dict[str, Any], code: bytes | None = None) -> Ran:
        plan = {"token": TOKEN, "workspace": str(tmp_path), "steps": list(steps), "rlimits": {}}
        pipes = [os.pipe() for _ in range(4)]
        (plan_r, plan_w), (told_r, told_w), (out_r, out_w), (err_r, err_w) = pipes
        os.write(plan_w, json.dumps(plan).encode())
        os.close(plan_w)
        memory = os.memfd_create("code")
        os.write(memory, code or b"")
        os.lseek(memory, 0, 0)
        passed = (plan_r, told_w, out_w, err_w, memory)
        words = [sys.executable, "-I", "-S", str(runner.__file__), *map(str, passed), "-1"]
        inherited = {name: value for name, value in os.environ.items() if name == "WATCHFLOOR_TEST_SESSION"}
        done = subprocess.run(words, pass_fds=passed, env=inherited, timeout=60, capture_output=True, check=False)
        for fd in passed:
            os.close(fd)
        read = [_whole(fd) for fd in (out_r, err_r, told_r)]
        assert not done.stdout and not done.stderr, done.stderr
        told = [json.loads(line) for line in read[2].splitlines()]
        assert all(one["token"] == TOKEN for one in told)
        return Ran(done.returncode, read[0], read[1], told)

    return ran


def test_pipes_lists_and_codes_are_bashs(run: Run, tmp_path: Path) -> None:
    def s(*words: str, joined: str = "") -> dict[str, Any]:
        return step(*words, cwd=tmp_path, joined=joined)

    assert run(s("printf", "b\\na\\n"), s("sort", joined="|"), s("head", "-n1", joined="|")).out == b"a\n"
    # false || echo 1 && echo 2; true || echo 3 && echo 4; false && echo 5; echo 6
    listed = run(
        s("false"), s("echo", "1", joined="||"), s("echo", "2", joined="&&"),
        s("true", joined=";"), s("echo", "3", joined="||"), s("echo", "4", joined="&&"),
        s("false", joined=";"), s("echo", "5", joined="&&"), s("echo", "6", joined=";"),
    )  # fmt: skip
    assert listed.out == b"1\n2\n4\n6\n" and listed.code == 0
    assert run(s("false"), s("true", joined="|")).code == 0 and run(s("true"), s("false", joined="|")).code == 1
    assert run(s("yes"), s("head", "-n1", joined="|")).out == b"y\n", "SIGPIPE ends it: it is not ignored"


def test_redirects_are_opened_in_order_and_descriptors_copied(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("b\na\n")
    missing = str(tmp_path / "missing")
    done = run(step("cat", "a", missing, cwd=tmp_path, redirects=(to(1, tmp_path / "both", "write"), copy(2, 1))))
    assert done.out == b"" and done.err == b"" and b"missing" in (tmp_path / "both").read_bytes()
    run(step("sort", cwd=tmp_path, redirects=(to(0, tmp_path / "a", "read"), to(1, tmp_path / "both", "append"))))
    assert (tmp_path / "both").read_text().endswith("a\nb\n")
    swapped = run(step("cat", "a", missing, cwd=tmp_path, redirects=(copy(2, 1), to(1, "/dev/null", "write"))))
    assert b"missing" in swapped.out and swapped.err == b""
    assert run(step("cat", missing, cwd=tmp_path), step("wc", "-l", cwd=tmp_path, joined="|&")).out == b"1\n"


def test_a_copy_of_a_closed_descriptor_fails_as_in_bash_and_the_program_is_not_run(run: Run, tmp_path: Path) -> None:
    closed: dict[str, Any] = {"descriptor": 1, "path": "", "mode": "close", "source": -1}
    # true >&- 2>&1 && touch ran || touch failed
    first = step("true", cwd=tmp_path, redirects=(closed, copy(2, 1)))
    done = run(first, step("touch", "ran", cwd=tmp_path, joined="&&"), step("touch", "failed", cwd=tmp_path, joined="||"))
    assert b"Bad file descriptor" in done.err and not done.refused
    assert (tmp_path / "failed").exists() and not (tmp_path / "ran").exists()


def test_a_redirect_goes_through_no_link_to_no_other_file_and_cuts_nothing_it_may_not(run: Run, tmp_path: Path) -> None:
    outside = tmp_path.parent / "precious"
    outside.write_text("precious")
    (tmp_path / "link").symlink_to(outside)
    (tmp_path / "hard").hardlink_to(outside)
    (tmp_path / "door").symlink_to(tmp_path.parent)
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "link", tmp_path / "hard", tmp_path / "door" / "precious", outside, tmp_path / ".." / "precious"):
        done = run(step("echo", "x", cwd=tmp_path, redirects=(to(1, path, "write"),)))
        assert done.code == 126 and done.refused, path
    assert outside.read_text() == "precious"
    assert "plain file" in run(step("cat", cwd=tmp_path, redirects=(to(0, tmp_path / "fifo", "read"),))).refused


def test_a_folder_that_became_a_link_is_not_entered(run: Run, tmp_path: Path) -> None:
    (tmp_path / "sub").symlink_to("/usr")
    assert "leads elsewhere" in run(step("ls", cwd=tmp_path / "sub")).refused


def test_only_the_file_that_was_judged_is_executed(run: Run, tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    shutil.copy("/bin/echo", tool)
    judged = step(str(tool), "hello", cwd=tmp_path)
    assert run(judged).out == b"hello\n"
    for change in (lambda: shutil.copy("/bin/cat", tool), lambda: os.replace(shutil.copy("/bin/cat", tmp_path / "other"), tool)):  # noqa: PTH105
        change()
        after = run(judged, step("echo", "next", cwd=tmp_path, joined=";"))
        assert after.code == 126 and "no longer the file" in after.refused and after.out == b"", "and nothing that follows runs"


def test_a_step_in_the_middle_of_a_pipe_that_is_refused_ends_the_others(run: Run, tmp_path: Path) -> None:
    bad = step("cat", cwd=tmp_path, joined="|")
    bad["file"] = [1, 2, 3]
    done = run(step("sleep", "60", cwd=tmp_path), bad, step("cat", cwd=tmp_path, joined="|"))
    assert done.refused and {one["code"] for one in done.told if one.get("step") == 0} == {137}


def test_scripts_run_by_descriptor_too(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\necho script $1\n")
    script.chmod(0o755)
    assert run(step(str(script), "x", cwd=tmp_path)).out == b"script x\n"


def test_code_is_read_from_its_descriptor_and_isolated(run: Run, tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("print('not mine')")
    python = step("python3", "-I", runner.CODE_FD, cwd=tmp_path)
    done = run(python, code=b"import sys, json; print(sys.flags.isolated, json.dumps([1]), sys.argv[0].startswith('/proc/self/fd/'))")
    assert done.out == b"1 [1] True\n", done.err


def test_steps_get_three_descriptors_and_no_more(run: Run, tmp_path: Path) -> None:
    assert run(step("ls", "/proc/self/fd", cwd=tmp_path)).out.split() in ([b"0", b"1", b"2", b"3"], [b"0", b"1", b"2", b"3", b"4"])


def test_a_signal_is_told_and_no_program_is_no_refusal(run: Run, tmp_path: Path) -> None:
    done = run(step("timeout", "-s", "KILL", "0.01", "sleep", "9", cwd=tmp_path))
    assert done.code == 137
    plain = step(str(tmp_path / "a"), cwd=tmp_path) if (tmp_path / "a").write_text("text") else {}
    assert run(plain).code == 1 and b"Permission denied" in run(plain).err


def test_groups() -> None:
    made = runner.pipelines([{"joined": word} for word in ("", "|", "|&", "&&", ";")])
    assert [(joined, [number for number, _ in group]) for joined, group in made] == [("", [0, 1, 2]), ("&&", [3]), (";", [4])]
