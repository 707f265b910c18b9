"""Agent programs as their users install them (packaging/test --programs), each set by its user so that our model answers it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fakes.model_server import Call
from tests.fakes.real_programs import QUIET

PROGRAMS = Path(os.environ.get("WATCHFLOOR_TEST_PROGRAMS", "/var/cache/watchfloor-programs"))
"""Where packaging/programs puts them."""
BIN = PROGRAMS / "node_modules" / ".bin"
AIDER = PROGRAMS / "aider" / "bin" / "aider"
KEY = "sk-of-the-test"
Files = Callable[[str], dict[str, Any]]
"""By the model's URL: JSON, or the text of a file that has none."""


@dataclass(frozen=True, slots=True)
class Installed:
    """One program with one scripted task."""

    kind: str
    title: str
    """What its row is called."""
    argv: tuple[str, ...]
    """Its task is added behind them."""
    shell: Callable[[str], Call] | None
    """How its model runs a command; None: it offers its model no tools."""
    answer_usd: float
    """What 1,000 tokens in and 100 out cost of its model."""
    env: Callable[[str], dict[str, str]]
    """By the model's URL."""
    files: Files = field(default=lambda _url: {})
    """Its user's settings, by their place in the home."""
    names_sessions: bool = False
    """Its row is called what it calls its session itself."""
    types: bool = False
    """It is a program for a terminal, which its task is typed into."""

    @property
    def source(self) -> str:
        """Which source sees it."""
        return self.kind.replace("-", "_")

    def start(self, home: Path, url: str, task: str, uid: int) -> Session:
        """As its user starts it in a project of theirs: the account ``uid``, whose home becomes its own."""
        project = home / "proj"
        project.mkdir(exist_ok=True)
        for place, settings in self.files(url).items():
            _merge(home / place, settings)
        said = (home / "said").open("ab")
        for folder, _, names in os.walk(home):
            for path in (folder, *(f"{folder}/{name}" for name in names)):
                os.chown(path, uid, uid, follow_symlinks=False)
        env = {"HOME": str(home), "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TMPDIR": str(home), "TERM": "dumb"}
        argv = [*self.argv] if self.types else [*self.argv, task]
        typed, shown = pty.openpty() if self.types else (-1, -1)
        account: dict[str, Any] = {"user": uid, "group": uid, "extra_groups": []} if uid != os.geteuid() else {}
        with said:
            stdin = shown if self.types else subprocess.DEVNULL
            made = subprocess.Popen(
                argv, cwd=project, env=env | self.env(url), stdin=stdin, stdout=said, stderr=said, start_new_session=True, **account
            )
        if self.types:
            os.close(shown)
            os.write(typed, f"{task}\n".encode())
        return Session(made, typed)


@dataclass(slots=True)
class Session:
    """A program that runs."""

    process: subprocess.Popen[bytes]
    _typed: int

    def close(self) -> None:
        """Nothing of it is left; its group is its own."""
        if self._typed >= 0:
            os.close(self._typed)
        if self.process.poll() is None:
            os.killpg(self.process.pid, 9)
        self.process.wait()


def _merge(file: Path, settings: dict[str, Any] | str) -> None:
    """What a file has already (our hook) stays in it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(settings, str):
        file.write_text(settings + (file.read_text() if file.exists() else ""))
        return
    had = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(had | settings))


def _claude(url: str) -> dict[str, str]:
    root = {"IS_SANDBOX": "1"} if os.geteuid() == 0 else {}
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY, **QUIET, **root}


def _codex_words() -> tuple[str, ...]:
    return ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-c", "model=gpt-5.1-codex")


def _codex(url: str) -> dict[str, Any]:
    provider = {"name": "loopback", "base_url": f"{url}/v1", "env_key": "OPENAI_API_KEY", "wire_api": "responses"}
    table = "".join(f"{name} = {json.dumps(value)}\n" for name, value in provider.items())
    quiet = "check_for_update_on_startup = false\n[analytics]\nenabled = false\n"
    return {".codex/config.toml": f'model_provider = "loopback"\n{quiet}[model_providers.loopback]\n{table}'}


def _gemini(_url: str) -> dict[str, Any]:
    quiet = {"privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False, "disableAutoUpdate": True}}
    trust = {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}
    return {".gemini/settings.json": {**quiet, "security": trust}}


def _qwen(_url: str) -> dict[str, Any]:
    quiet = {"privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False, "disableAutoUpdate": True}}
    return {".qwen/settings.json": {**quiet, "security": {"auth": {"selectedType": "openai"}}}}


def _opencode(url: str) -> dict[str, Any]:
    provider = {"anthropic": {"options": {"baseURL": f"{url}/v1", "apiKey": KEY}}}
    settings = {"provider": provider, "model": "anthropic/claude-sonnet-4-5", "autoupdate": False, "share": "disabled"}
    return {".config/opencode/opencode.json": settings}


def _pi(url: str) -> dict[str, Any]:
    return {".pi/agent/models.json": {"providers": {"anthropic": {"baseUrl": url}}}}


def _run(command: str) -> Call:
    return Call("run_shell_command", {"command": command, "description": "work", "is_background": False})


SONNET, GPT, PRO = 0.0045, 0.00225, 0.00225
CLAUDE_CODE = Installed(
    "claude-code",
    "Claude Code",
    (str(BIN / "claude"), "--model", "claude-sonnet-4-5", "--permission-mode", "bypassPermissions", "-p"),
    lambda command: Call("Bash", {"command": command, "description": "work"}),
    SONNET,
    _claude,
    names_sessions=True,
)
CODEX = Installed(
    "codex",
    "Codex",
    (str(BIN / "codex"), *_codex_words()),
    lambda command: Call("exec_command", {"cmd": command}),
    GPT,
    lambda _url: {"OPENAI_API_KEY": KEY},
    _codex,
)
GEMINI = Installed(
    "gemini",
    "Gemini CLI",
    (str(BIN / "gemini"), "-m", "gemini-2.5-pro", "--approval-mode", "yolo", "-p"),
    lambda command: Call("run_shell_command", {"command": command, "description": "work"}),
    PRO,
    lambda url: {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": url},
    _gemini,
)
QWEN = Installed(
    "qwen",
    "Qwen Code",
    (str(BIN / "qwen"), "--approval-mode", "yolo", "-p"),
    _run,
    GPT,
    lambda url: {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "gpt-5.1-codex"},
    _qwen,
)
OPENCODE = Installed(
    "opencode",
    "OpenCode",
    (str(BIN / "opencode"), "run"),
    lambda command: Call("bash", {"command": command, "description": "work"}),
    SONNET,
    lambda _url: {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"},
    _opencode,
)
PI = Installed(
    "pi",
    "pi",
    (str(BIN / "pi"), "--provider", "anthropic", "--model", "claude-sonnet-4-5", "-p"),
    lambda command: Call("bash", {"command": command}),
    SONNET,
    lambda _url: {"ANTHROPIC_API_KEY": KEY, "PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"},
    _pi,
)
AIDER_CHAT = Installed(
    "aider",
    "aider",
    (
        *(str(AIDER), "--model", "anthropic/claude-sonnet-4-5", "--no-git", "--yes-always", "--no-check-update"),
        *("--analytics-disable", "--no-show-model-warnings", "--no-fancy-input", "--no-pretty", "--no-show-release-notes", "--no-stream"),
    ),
    None,
    SONNET,
    lambda url: {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_API_BASE": url},
    types=True,
)
ALL = (CLAUDE_CODE, CODEX, GEMINI, QWEN, OPENCODE, PI, AIDER_CHAT)
