"""Programs that build a sandbox of their own still can, with Watchfloor around them; nothing else may create user namespaces."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.instance import Instance
from tests.fakes.real_programs import codex
from tests.fakes.standing import standing_instance

QUIET = ("--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync")
PAGE = "data:text/html,<p>its own sandbox</p>"


@pytest.fixture(scope="module")
def it() -> Iterator[Instance]:
    with standing_instance() as instance:
        yield instance


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Codex where every account can run it."""
    folder = tmp_path_factory.mktemp("programs")
    for above in (folder, *folder.parents):
        if above.stat().st_mode & 0o001 == 0 and above.name.startswith(("pytest-", "wt-", "programs")):
            above.chmod(above.stat().st_mode | 0o001)
    shutil.copy2(codex(), folder / "codex")
    return folder / "codex"


def said(it: Instance, agent: str) -> str:
    it.state_becomes(agent, "ended", "failed")
    return (it.state_dir / "output" / f"{agent}.log").read_text(errors="replace")


def test_codex_builds_its_sandbox_when_an_operator_starts_it(it: Instance, program: Path) -> None:
    agent = it.launch(str(program), "sandbox", "--", "/bin/echo", "inside", agent_type="codex")
    # Codex makes no helper of its own below /tmp, where tests live: it gets as far as running it, inside its new namespaces.
    assert "inside" in (words := said(it, agent)) or "execvp codex-linux-sandbox" in words
    other = it.launch("/bin/sh", "-c", f"{program} sandbox -- /bin/echo inside")
    assert "No permissions to create new namespace" in said(it, other)


@pytest.mark.long
def test_a_browser_builds_its_sandbox_when_an_operator_starts_it(it: Instance) -> None:
    """Debian's Chromium, which packaging/test --long installs."""
    browser = ("/usr/bin/chromium", *QUIET, "--dump-dom", PAGE)
    assert "<p>its own sandbox</p>" in said(it, it.launch(*browser))
    assert "No usable sandbox" in said(it, it.launch("/bin/sh", "-c", 'exec "$@"', "sh", *browser))
