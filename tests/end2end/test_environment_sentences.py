"""An agent finds in its environment what is written down for it and nothing else: a secret of the supervisor's is nowhere it can look.

The search is a real one, from inside: its own and every visible process's environment and command line, its files, its folders, what its
socket answers, all of its root where that is its own. It proves itself on a word that was put there to be found.
"""

from __future__ import annotations

import json
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from console.settings.options import save_options
from tests.fakes import instance as instances
from tests.fakes.instance import Instance, files_below, until

HELD = (
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "WF_CANARY",
    "SSH_AUTH_SOCK",
    "HTTPS_PROXY",
    "DBUS_SESSION_BUS_ADDRESS",
    "PYTHONSTARTUP",
    "BOT_KEY",
)
"""Variables of the supervisor's in which a canary is planted; BOT_KEY is marked for agents of type ``bot``."""
LOOK = """
import glob, json, stat
words, places, leave = [w[::-1].encode() for w in json.loads(sys.argv[1])], json.loads(sys.argv[2]), set(json.loads(sys.argv[3]))
given = os.environ.get('GIVEN', '')
open('data/left', 'w').write('a ' + given + ' b')
open('.sh_history', 'a').write('ls\\n')
def reads(path):
    try:
        with open(path, 'rb') as file: return file.read(1 << 26)
    except OSError: return b''
def held(name, raw): return {w.decode() for w in words if w in name.encode() + raw}
def files():
    for place in places:
        for folder, names, files in os.walk(place):
            names[:] = [n for n in names if os.path.join(folder, n) not in leave]
            for path in (os.path.join(folder, n) for n in (*files, *names)):
                kind = os.lstat(path).st_mode
                raw = reads(path) if stat.S_ISREG(kind) else os.fsencode(os.readlink(path)) if stat.S_ISLNK(kind) else b''
                for word in held(path, raw): yield word, path
def processes():
    more = ['/proc/mounts', '/proc/self/mountinfo', '/proc/cmdline', '/proc/keys', '/proc/net/unix']
    for path in (*glob.glob('/proc/[0-9]*/environ'), *glob.glob('/proc/[0-9]*/cmdline'), *glob.glob('/proc/[0-9]*/task/*/environ'), *more):
        for word in held('', reads(path)): yield word, path
told = json.dumps([agent.me(), agent.notices()]).encode()
print(json.dumps({
    'names': sorted(os.environ),
    'mine': sorted((w, name) for name, value in os.environ.items() for w in held(name, os.fsencode(value))),
    'proc': sorted(processes()), 'files': sorted(files()), 'said': sorted(held('', told)),
    'door': os.environ['WATCHFLOOR_AGENT_SOCKET'], 'token': bool(os.environ['AGENT_AUTH_TOKEN']),
}), flush=True)
time.sleep(300)
"""


@pytest.fixture
def canary() -> str:
    return f"wfcanary-{secrets.token_hex(12)}"


@pytest.fixture
def planted(state_dir: Path, canary: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state directory whose supervisor will have the canary in its environment."""
    for name in HELD:
        monkeypatch.setenv(name, f"x://{canary}")
    monkeypatch.setenv("BOT_REGION", "north")
    bot = {"names": ["BOT_REGION", "ABSENT"], "secrets": ["BOT_KEY"]}
    save_options(state_dir / "settings.json", {"environment": {"bot": bot}})
    yield state_dir


@pytest.fixture
def alone(planted: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its supervisor is a process of its own: a forked one does not show its environment in /proc."""
    monkeypatch.setattr(instances, "SHARED", [])
    return planted


def look(it: Instance, words: list[str], places: list[str], leave: list[str], **options: Any) -> dict[str, Any]:
    """What an agent finds of words that are in neither its program nor its command line: each finding with its word."""
    start = "import os, sys, time; sys.path.insert(0, os.environ['WATCHFLOOR_TOYS']); import client; agent = client.Agent()\n"
    backwards = json.dumps([word[::-1] for word in words])
    agent = it.launch("python3", "-c", start + LOOK, backwards, json.dumps(places), json.dumps(leave), **options)
    until(lambda: it.api.output(agent).text.endswith("\n") or it.agent(agent).ended_at is not None, 120, "it has looked")
    said: dict[str, Any] = json.loads(it.api.output(agent).text)
    return said | {"agent": agent}


def is_clean(it: Instance, said: dict[str, Any], canary: str) -> None:
    """Nothing found inside; and from outside neither in what was kept nor in any process of the agents' or the guard's."""
    assert canary not in json.dumps([said[where] for where in ("mine", "proc", "files", "said")])
    assert said["token"] and Path(said["door"]).name == "agent.sock"
    assert not {"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "HTTPS_PROXY", "BOT_KEY", "BOT_REGION"} & set(said["names"])
    guard = it.living_guard()
    assert Path(f"/proc/{guard}/cmdline").read_bytes()
    for pid in (guard, *agents_of(it)):
        for name in ("environ", "cmdline"):
            with suppress(FileNotFoundError, ProcessLookupError):  # a canary of the armed light lives for a moment
                assert canary.encode() not in Path(f"/proc/{pid}/{name}").read_bytes(), (pid, name)
    kept = [path for path, data in files_below(it.state_dir).items() if canary.encode() in data]
    assert kept == [], "neither log, ledger, audit nor output has it"
    shown = it.api.agent(said["agent"]).environment
    assert shown is not None and {v.name for v in shown.variables} == set(said["names"]) - {"LC_CTYPE", "PWD"}  # Python and bwrap say these
    assert {v.name for v in shown.variables if v.secret} == {"AGENT_AUTH_TOKEN"}, "GIVEN reads as none"


def agents_of(it: Instance) -> list[int]:
    """Pids whose environment says that they are agents of this instance."""
    mark = f"WATCHFLOOR_INSTANCE={it.places.instance_id}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdigit() and mark in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    assert found
    return found


KINDS = {
    # Of a managed agent's view of this machine: what is this instance's, a person's, or shared. The root of the other two is their own.
    "none": ([".", "STATE", "/etc", "/run", "/var/tmp", "/dev/shm", "/home", "/root"], []),
    "bubblewrap": (["/"], ["/proc", "/sys", "/usr"]),
    "docker": (["/"], ["/proc", "/sys"]),
}
"""Sandbox -> where its files are looked through, and which folders are left to the rest of the search or to the system's packages."""


def looks_in_vain(it: Instance, canary: str, sandbox: str) -> str:
    """An agent that finds what it was given and never the canary. Its id."""
    places, leave = KINDS[sandbox]
    places = [str(it.state_dir) if place == "STATE" else place for place in places]
    given = f"wfgiven-{secrets.token_hex(12)}"
    said = look(it, [canary, given], places, leave, sandbox=sandbox, env={"GIVEN": given})
    is_clean(it, said, canary)
    # The search is one: what was put there to be found is found by each part of it.
    assert said["mine"] == [[given, "GIVEN"]]
    assert any(path.endswith("/environ") for _, path in said["proc"]) and any(path.endswith("/data/left") for _, path in said["files"])
    return str(said["agent"])


def test_a_secret_of_the_supervisors_is_nowhere_an_agent_can_look(alone: Path, canary: str) -> None:
    with Instance(alone) as it:
        assert it.process is not None and canary.encode() in Path(f"/proc/{it.process.pid}/environ").read_bytes(), "it was planted"
        looks_in_vain(it, canary, "none")
        looks_in_vain(it, canary, "bubblewrap")


@pytest.mark.parametrize("sandbox", ["bubblewrap", "none"])
def test_its_commits_are_by_the_operator_unless_its_home_or_its_repository_says_otherwise(
    state_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: str
) -> None:
    (tmp_path / ".gitconfig").write_text('[user]\n\tname = "Bea \\"B\\" Bee"\n\temail = bea@example.org\n')
    for name, value in (("HOME", str(tmp_path)), ("GIT_CONFIG_GLOBAL", str(tmp_path / ".gitconfig"))):
        monkeypatch.setenv(name, value)
    commit = "git commit -q --allow-empty -m x && git log -1 --format=%an,%ae,%cn"
    other = "git config --global user.name Other && git config user.email other@example.org"
    with Instance(state_dir) as it:
        agent = it.launch("sh", "-c", f"git init -q repos/shop && cd repos/shop && {commit} && {other} && {commit}", sandbox=sandbox)
        it.state_becomes(agent, "ended", "failed")
        said = it.says(agent, "Other").splitlines()
    assert [line for line in said if "@" in line] == ['Bea "B" Bee,bea@example.org,Bea "B" Bee', "Other,other@example.org,Other"]


@pytest.mark.parametrize("sandbox", ["bubblewrap", "none"])
def test_where_no_settings_name_a_person_its_commits_are_an_agents(
    state_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: str
) -> None:
    (tmp_path / ".gitconfig").write_text('[user]\n\tuseConfigOnly = true\n\tname = lost \\\n[user "x"]\n\tname = Not This\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / ".gitconfig"))
    commit = "git init -q repos/shop && cd repos/shop && git commit -q --allow-empty -m x && git log -1 --format=%an,%ae"
    with Instance(state_dir) as it:
        assert "agent,agent@localhost" in it.says(it.launch("sh", "-c", commit, sandbox=sandbox), "@")


@pytest.mark.engine
def test_nor_in_a_container_its_description_its_image_or_the_images_history(planted: Path, canary: str, engine_socket: Path) -> None:
    with Instance(planted, "--engine-socket", str(engine_socket)) as it:
        agent = looks_in_vain(it, canary, "docker")
        wanted = json.dumps({"label": [f"io.watchfloor.instance={it.places.instance_id}"]})
        [container] = [c for c in engine(engine_socket, f"/containers/json?filters={quote(wanted)}") if agent in str(c["Labels"])]
        image = container["ImageID"]
        for path in (f"/containers/{container['Id']}/json", f"/images/{image}/json", f"/images/{image}/history"):
            told = json.dumps(engine(engine_socket, path))
            assert canary not in told and "AGENT_AUTH_TOKEN" not in told and "BOT_" not in told


def engine(engine_socket: Path, path: str) -> Any:
    """What the engine says."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(engine_socket))
        connection = HTTPConnection("localhost")
        connection.sock = sock
        connection.request("GET", path)
        answer = connection.getresponse()
        assert answer.status == 200, path
        return json.loads(answer.read())


def test_a_type_has_what_is_written_down_for_it_a_secret_only_where_it_is_marked_and_both_are_shown(planted: Path, canary: str) -> None:
    with Instance(planted) as it:
        said = look(it, [canary], ["."], [], agent_type="bot")
        assert said["mine"] == [[canary, "BOT_KEY"]] and "BOT_REGION" in said["names"]
        shown = it.api.agent(said["agent"]).environment
        assert shown is not None and shown.agent_type == "bot"
        assert {v.name: v.secret for v in shown.variables if v.origin == "type"} == {"BOT_KEY": True, "BOT_REGION": False}
        assert any("ABSENT is not in" in words for words in shown.left_out)
        assert [r.kind for r in it.api.audit(limit=50).rows].count("launch.secrets") == 1
        told = subprocess.run(
            [sys.executable, "-m", "console", "agent", "show", said["agent"], "--state-dir", str(planted)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert "environment of type bot" in told and "BOT_KEY (SECRET)" in told and canary not in told
        child = "import json; c = agent.spawn(['sleep', '300']); print(c['id'], flush=True)\n"
        child += "try: agent.spawn(['true'], agent_type='bot')\nexcept Exception as error: print('no', error, flush=True)\ntime.sleep(300)"
        parent = it.python(child, agent_type="bot")
        until(lambda: "no " in it.api.output(parent).text)
        born = it.api.agent(it.api.output(parent).text.split()[0]).environment
        assert born is not None and born.agent_type == "bot" and "its children have its own" in it.api.output(parent).text
        it.stop()
        it.start()
        assert it.api.agent(said["agent"]).environment == shown
