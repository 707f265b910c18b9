"""The real Claude Code and Codex, in throw-away homes, with a model of ours on loopback and nothing of the machine's environment."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import claude_agent_sdk

from tests.fakes.instance import until

CLAUDE = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
_PEERS = Path(sys.prefix) / "peers" / "node_modules"
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
}
"""Nothing but the model's API is asked."""


def codex() -> Path:
    """The real Codex, which packaging/test installs by requirements/npm."""
    found = codex_if_there()
    assert found is not None, "Codex is not there: packaging/test installs it"
    return found


def codex_if_there() -> Path | None:
    """The same, or None."""
    return next(iter(sorted(_PEERS.glob("@openai/codex-linux-*/vendor/*/bin/codex"))), None)


def claude_environment(home: Path, url: str) -> dict[str, str]:
    """The whole environment of a session in ``home``."""
    return {
        "HOME": str(home),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "CLAUDE_CODE_TMPDIR": str(home),
        "TMPDIR": str(home),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-ant-api03-of-the-test",
        **QUIET,
    }


def start_claude(home: Path, url: str, prompt: str, *options: str, model: str = "claude-sonnet-4-5") -> subprocess.Popen[bytes]:
    """A session that somebody started without Watchfloor, its own leader; its words go to ``home/said``. The caller ends it."""
    cwd = home / "proj"
    cwd.mkdir(parents=True, exist_ok=True)
    command = [str(CLAUDE), "-p", prompt, "--model", model, "--output-format", "stream-json", "--verbose", *options]
    env = claude_environment(home, url) | ({"IS_SANDBOX": "1"} if os.geteuid() == 0 else {})
    with (home / "said").open("ab") as said:
        return subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True)


def end_all_of(home: Path) -> None:
    """Ends whatever runs for this home still: nothing writes into the folder any more."""
    mark = f"HOME={home}".encode()

    def none_is_left() -> bool:
        left = 0
        for name in filter(str.isdecimal, os.listdir("/proc")):
            with suppress(OSError):
                if mark in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                    left += 1
                    os.kill(int(name), signal.SIGKILL)
        return not left

    until(none_is_left, words=f"what ran for {home} has ended")


def peers_of(pid: int) -> set[tuple[str, int]]:
    """Where the process's TCP and UDP sockets are connected to (proc(5), net/tcp): address and port."""
    inodes = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        with suppress(OSError):
            target = os.readlink(f"/proc/{pid}/fd/{name}")
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    found = set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            address, _, port = fields[2].partition(":")
            if fields[9] in inodes and int(address, 16):
                packed = b"".join(bytes.fromhex(address[n : n + 8])[::-1] for n in range(0, len(address), 8))
                text = socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)
                found.add((text.removeprefix("::ffff:"), int(port, 16)))
    return found
