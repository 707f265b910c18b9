"""The first hour of an ordinary account, with no folder named anywhere. Run inside a world of its own (user_world.py)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.fakes.user_story import WAIT_S, tell, until

HOME = Path(os.environ["HOME"])
STATE = HOME / ".local" / "state" / "watchfloor"
SESSION = "ca2200bd-a045-4b6c-a82c-3a0d8505a41a"


def watchfloor(*words: str) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of one verb, as it is typed."""
    done = subprocess.run(
        [sys.executable, "-m", "console", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    return done.returncode, done.stdout, done.stderr


def start_claude() -> subprocess.Popen[bytes]:
    """A session of the account's own Claude Code, as that writes it down."""
    program = HOME / "claude"
    shutil.copy("/bin/sleep", program)
    process = subprocess.Popen([str(program), "600"])
    ticks = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    sessions = HOME / ".claude" / "sessions"
    sessions.mkdir(parents=True)
    body = {"pid": process.pid, "sessionId": SESSION, "cwd": str(HOME), "procStart": ticks, "status": "busy", "name": "my session"}
    (sessions / f"{process.pid}.json").write_text(json.dumps(body))
    return process


def seen() -> list[str]:
    """The names of the agents that somebody else started, as ``fleet`` lists them."""
    code, out, _ = watchfloor("fleet", "--json")
    return [a["name"] for a in json.loads(out)["agents"] if a["control_level"] == "observed"] if code == 0 else []


def first_hour() -> dict[str, Any]:
    """The list is the first command; then a hook, and an agent of Watchfloor's beside one of the account's own."""
    session = start_claude()
    out: dict[str, Any] = {"other": watchfloor("fleet", "--state-dir", str(HOME / "typo")), "first": watchfloor("fleet")}
    out["hook"] = watchfloor("install-hook", "claude-code", "--yes")
    out["run"] = watchfloor("run", "--name", "ours", "--", "/bin/sleep", "600")
    until(seen, f"the session is in the fleet: {out}")
    out["seen"] = seen()
    out["status"] = watchfloor("status")
    (other,) = [a["id"] for a in json.loads(watchfloor("fleet", "--json")[1])["agents"] if a["control_level"] == "observed"]
    until(lambda: "watchfloor kill" in watchfloor("freeze", other)[2], "its kill is prepared")
    out |= {"other_id": other, "freeze": watchfloor("freeze", other), "adopt": watchfloor("adopt", other)}
    out["unproven"] = [a["id"] for a in json.loads(watchfloor("fleet", "--json")[1])["agents"] if a["best_effort"]]
    out["panic"] = watchfloor("panic", "--reason", "the story ends")
    out["session"] = session.poll()
    return out


if __name__ == "__main__":
    tell(first_hour())
