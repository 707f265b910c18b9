"""The demo's stand-ins and its broom, with real processes, namespaces and cgroups."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.cli.embedded import child_environment
from console.demo import cleanup
from console.demo import web as demo_web
from console.demo.standins import BUCKET, Bucket, WebHosts, bucket_program, start_bucket, start_web_hosts
from console.domain.errors import Unavailable
from tests.leaks import SESSION_VARIABLE

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces and cgroups need root here")


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Bucket]:
    started = start_bucket(tmp_path / "bucket.log")
    yield started
    started.stop()


@pytest.fixture
def web(tmp_path: Path) -> Iterator[WebHosts]:
    started = start_web_hosts(tmp_path / "web.log")
    yield started
    started.stop()


def test_the_bucket_is_there_and_gone_after_its_stop(bucket: Bucket) -> None:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(f"{bucket.endpoint}/storage/v1/b/{BUCKET}", timeout=60) as answer:
        assert json.loads(answer.read())["name"] == BUCKET
    bucket.stop()
    with pytest.raises(OSError):
        direct.open(f"{bucket.endpoint}/storage/v1/b/{BUCKET}", timeout=60)


def test_a_missing_wheel_is_said_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.demo.standins.PACKAGE", "no_such_package")
    with pytest.raises(Unavailable, match="pip install no-such-package"):
        bucket_program()


@needs_root
def test_web_hosts_answer_in_their_own_namespace_alone_and_log_what_arrived(web: WebHosts) -> None:
    ask = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=60).read().decode()[:60])"
    inside = ["nsenter", f"--net={web.netns}", sys.executable, "-I", "-c", ask]
    for host, address in demo_web.HOSTS.items():
        told = subprocess.run([*inside, f"http://{address}/page"], capture_output=True, text=True, timeout=120, check=True)
        assert host in told.stdout
    assert web.arrived() == [(host, "/page") for host in demo_web.HOSTS]
    assert os.readlink(web.netns) != os.readlink("/proc/self/ns/net")
    links = subprocess.run(["nsenter", f"--net={web.netns}", "cat", "/proc/net/dev"], capture_output=True, text=True, check=True).stdout
    assert [line.split(":")[0].strip() for line in links.splitlines()[2:]] == ["lo"]
    uid = next(line for line in Path(f"/proc/{web.child.pid}/status").read_text().splitlines() if line.startswith("Uid"))
    assert uid.split()[1] == str(demo_web.UNPRIVILEGED)


@needs_root
def test_web_hosts_end_when_whoever_started_them_is_killed(tmp_path: Path) -> None:
    code = "import sys, time, pathlib; from console.demo.standins import *\n"
    code += "w = start_web_hosts(pathlib.Path(sys.argv[1])); print(w.child.pid, flush=True); time.sleep(60)"
    starter = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "web.log")], stdout=subprocess.PIPE, env=child_environment())
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    handle = os.pidfd_open(pid)
    starter.kill()
    starter.wait()
    starter.stdout.close()
    deadline = time.monotonic() + 60
    while cleanup.alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    ended = not cleanup.alive(pid)
    if not ended:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    os.close(handle)
    assert ended


@pytest.fixture
def leaf() -> Iterator[tuple[str, Path]]:
    """An instance's agent cgroup with nothing in it."""
    instance = secrets.token_hex(4)
    mounts = [m for m in cleanup.cgroup_mounts() if (m / "cgroup.procs").exists() and (m / "cgroup.controllers").exists()]
    folder = mounts[0] / f"watchfloor-{instance}" / "agents" / "a-1"
    folder.mkdir(parents=True)
    yield instance, folder
    for place in (folder, folder.parent, folder.parent.parent):
        if place.exists():
            place.rmdir()


@needs_root
def test_the_witness_finds_what_ran_away_and_the_broom_removes_it(leaf: tuple[str, Path]) -> None:
    instance, folder = leaf
    sleep = shutil.which("sleep") or "sleep"
    child = subprocess.Popen(
        ["/bin/sh", "-c", 'echo $$ > "$1/cgroup.procs"; env -i setsid "$2" 60 & wait', "sh", str(folder), sleep], start_new_session=True
    )
    deadline = time.monotonic() + 60
    while len(found := cleanup.agent_processes(instance)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(found) == 2
    assert child.pid in found
    assert cleanup.agent_processes(secrets.token_hex(4)) == []
    assert cleanup.remove_cgroups(instance, wait_s=0.2) != []  # what holds a process is not removed
    for pid in found:
        assert cleanup.end_process(pid, lambda p: cleanup.is_agents(p, instance), wait_s=60) == ""
    child.wait()
    assert cleanup.settled(instance, "/nonexistent.sock", 60) == []
    assert cleanup.remove_cgroups(instance) == []
    assert not folder.exists()


def test_the_witness_knows_an_agent_by_its_environment_and_what_shares_its_pid_namespace() -> None:
    instance = secrets.token_hex(4)
    sleep = shutil.which("sleep") or "sleep"
    # As an ordinary user has it: no cgroup, a PID namespace; the second process has forgotten its environment.
    inside = ["unshare", *([] if os.geteuid() == 0 else ["--user"]), "--pid", "--fork", "--kill-child", "--mount-proc"]
    child = subprocess.Popen(
        [*inside, "/bin/sh", "-c", 'env -i setsid "$1" 60 & wait', "sh", sleep],
        env={"PATH": os.defpath, "WATCHFLOOR_INSTANCE": instance, SESSION_VARIABLE: os.environ[SESSION_VARIABLE]},
    )
    deadline = time.monotonic() + 60
    while len(before := cleanup.watched(instance)) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(before) == 3  # unshare itself, the shell, and what ran away
    assert child.pid in before
    assert len(cleanup.still_alive(before)) == 3
    child.kill()
    child.wait()
    while cleanup.still_alive(before) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert cleanup.still_alive(before) == []


def test_a_process_that_is_not_what_was_meant_is_not_signalled() -> None:
    child = subprocess.Popen([shutil.which("sleep") or "sleep", "60"])
    try:
        assert cleanup.end_process(child.pid, lambda pid: cleanup.is_guard(pid, "0a0a0a0a")) == ""
        assert cleanup.end_process(child.pid, lambda pid: cleanup.is_agents(pid, "0a0a0a0a")) == ""
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()
