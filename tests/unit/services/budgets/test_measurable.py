"""A limit on cost that nothing measures is refused before anything starts, or accepted knowingly."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from console.domain.agent import LaunchRequest, SandboxKind
from console.domain.budget import Limits
from console.domain.errors import UsageProblem
from console.services.budgets import measurable

CAPPED = Limits(cost_usd=1.0)


def installed(folder: Path, package: str, name: str, line: str = "#!/usr/bin/env node") -> Path:
    """As npm does it: a link in bin to the package's script."""
    script = folder / "lib" / "node_modules" / package / "index.js"
    script.parent.mkdir(parents=True)
    script.write_text(f"{line}\n")
    script.chmod(0o755)
    link = folder / "bin" / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(script)
    return link


def why(*argv: str, sandbox: SandboxKind = SandboxKind.NONE) -> str:
    return measurable.why_unmeasured(LaunchRequest(argv, sandbox=sandbox, limits=CAPPED))


def test_a_program_whose_spend_nothing_reads_is_known_by_its_file_however_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = installed(tmp_path, "@github/copilot", "copilot")
    monkeypatch.setenv("PATH", f"{link.parent}:/usr/bin")
    reason = why("copilot", "-p", "x")
    assert reason.startswith("nothing reads what GitHub Copilot CLI spends: ")
    assert reason == why(str(link)) == why(str(link.resolve())) == why("node", str(link.resolve()), "-p", "x")


def test_programs_whose_spend_is_read_and_commands_that_report_for_themselves_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = installed(tmp_path, "@google/gemini-cli", "gemini")
    monkeypatch.setenv("PATH", f"{link.parent}:/usr/bin")
    assert why("gemini", "-p", "x") == why("python3", "my_agent.py") == why("sh", "-c", "copilot") == why("no-such-program") == ""
    # The word alone says nothing of a container's files: another program has the name too.
    assert why("copilot", sandbox=SandboxKind.DOCKER) == ""


@pytest.mark.parametrize("request_of", [partial(LaunchRequest, ("x",), limits=CAPPED), partial(LaunchRequest, ("x",), tree_limits=CAPPED)])
def test_a_limit_on_cost_is_refused_with_the_reason_unless_it_is_accepted(request_of: Callable[..., LaunchRequest]) -> None:
    with pytest.raises(UsageProblem, match=r"cannot be measured, because nothing reads it\. .*--unmeasured"):
        measurable.check(request_of(), "nothing reads it")
    accepted = request_of(unmeasured=True)
    measurable.check(accepted, "nothing reads it")


def test_other_limits_need_no_measured_cost() -> None:
    timed = LaunchRequest(("x",), limits=Limits(wall_s=9.0))
    measurable.check(timed, "nothing reads it")
    assert measurable.note(timed) == ""


def test_the_start_says_of_a_limit_on_cost_that_nothing_or_only_the_program_itself_reports_the_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(*argv: str) -> str:
        return measurable.note(LaunchRequest(argv, limits=CAPPED))

    unread = installed(tmp_path, "@github/copilot", "copilot")
    installed(tmp_path, "@google/gemini-cli", "gemini")
    monkeypatch.setenv("PATH", f"{unread.parent}:/usr/bin")
    assert said("sleep", "100") == said("python3", "my_agent.py") == measurable.SELF_REPORTED
    assert said("copilot").startswith("the limit on cost is not measured: nothing reads what GitHub Copilot CLI spends: ")
    assert said("gemini", "-p", "x") == ""


def test_a_model_without_a_price_is_measured_only_where_the_program_says_its_cost() -> None:
    request = LaunchRequest(("x",), limits=CAPPED)
    assert measurable.why_unpriced(request, "codex", "made-up-model") == "no price is known of the model made-up-model"
    assert measurable.why_unpriced(request, "codex", "gpt-5.1") == measurable.why_unpriced(request, "codex", "") == ""
    assert measurable.why_unpriced(request, "claude-code", "made-up-model") == ""
    assert measurable.why_unpriced(LaunchRequest(("x",)), "codex", "made-up-model") == ""
