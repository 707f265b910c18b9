"""A judged call as a plan that ``steps.py`` carries out; or why it is not carried, in words. Nothing is ever handed to a shell instead."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from console.domain.errors import Denied, UsageProblem
from console.policy.files.paths import NULL
from console.policy.rules.verdicts import Redirect, Step
from console.policy.shell.lexer import Refused
from console.policy.shell.lines import simple_commands
from console.sandbox.bubblewrap import SYSTEM_FOLDERS
from console.sandbox.calls.steps import CODE_FD

TOOLS = {"shell": "shell", "argv": "argv", "python": "run_python"}
"""What can be executed, and the tool that it is judged as."""
STEPS_MAX = 64
CODE_BYTES = 64 * 1024
_RISKY = re.compile(
    r"\b(os\.system|subprocess|socket|ctypes|eval|exec|__import__|pickle|shutil\.rmtree|os\.(?:remove|unlink|kill|fork)|urllib|requests)\b"
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is executed: nothing else of the call is."""

    steps: tuple[dict[str, Any], ...]
    code: bytes | None = None
    """Python's own text, which it reads from a descriptor."""
    warnings: tuple[str, ...] = ()
    """What a person may want to check. It controls nothing: the sandbox does that."""

    @property
    def programs(self) -> list[str]:
        """The files that are executed."""
        return [str(step["program"]) for step in self.steps]


def plan_of(tool: str, argument: str, steps: Sequence[Step], workspace: Path) -> Plan:
    """Raises Denied with the form that is not carried, UsageProblem for a tool that is not executed. ``workspace``: as it was judged."""
    if tool not in TOOLS:
        raise UsageProblem(f"Tool {tool[:40]!r} is not executed here.", f"Tools are {', '.join(TOOLS)}.")
    if tool == "shell":
        _refuse_background(argument)
    if not steps or len(steps) > STEPS_MAX:
        raise _not_carried("it has no step to execute" if not steps else f"it has more than {STEPS_MAX} steps")
    # steps.py opens paths without following links, so the name of the workspace must have none either.
    real = str(workspace.resolve())
    made = tuple(_step(replace(step, cwd=real if step.cwd == str(workspace) else step.cwd), real) for step in steps)
    if tool != "python":
        return Plan(made)
    code = argument.encode()
    if len(code) > CODE_BYTES:
        raise _not_carried(f"the code has more than {CODE_BYTES:,} bytes")
    # What was judged is the program and its -c; what it reads is the code itself, from a descriptor, isolated (-I).
    only = {**made[0], "argv": [steps[0].argv[0], "-I", CODE_FD]}
    found = sorted(set(_RISKY.findall(argument)))
    return Plan((only,), code, tuple(f"the code names {word}" for word in found[:20]))


def _refuse_background(argument: str) -> None:
    try:
        commands = simple_commands(argument)
    except Refused as error:
        raise _not_carried(error.why) from error
    # Its end would not be seen: the call is over with its last step, and what runs on would be killed at random.
    if any(command.behind for command in commands):
        raise _not_carried("a command in the background (&): it would run on after the call")


def _step(step: Step, workspace: str) -> dict[str, Any]:
    if not step.program or step.file is None:
        raise _not_carried(f"there is no program {step.argv[0][:100]} here that could be checked")
    for path, what in ((step.program, "program"), (step.cwd, "folder")):
        if not _is_inside(path, workspace):
            raise _not_carried(f"{what} {path[:200]} is not in the sandbox")
    return {
        "argv": list(step.argv),
        "program": step.program,
        "file": list(step.file),
        "cwd": step.cwd,
        "joined": step.joined,
        "redirects": [_redirect(one, workspace) for one in step.redirects],
        "environment": [list(pair) for pair in step.environment],
    }


def _redirect(one: Redirect, workspace: str) -> dict[str, Any]:
    if one.mode in ("write", "append") and one.path != NULL and not one.path.startswith(f"{workspace}/"):
        raise _not_carried(f"a redirect to {one.path[:200] or 'nowhere certain'}, outside of the workspace")
    if one.mode not in ("read", "write", "append", "copy", "close") or one.descriptor not in (0, 1, 2):
        raise _not_carried(f"a redirect of descriptor {one.descriptor}")
    return {"descriptor": one.descriptor, "path": one.path, "mode": one.mode, "source": one.source}


def _is_inside(path: str, workspace: str) -> bool:
    """Whether a path is one that the sandbox shows as it was judged: the workspace, or the system's own folders."""
    flat = posixpath.normpath(path)
    return any(flat == folder or flat.startswith(f"{folder}/") for folder in (workspace, *SYSTEM_FOLDERS))


def _not_carried(why: str) -> Denied:
    return Denied(
        f"The call is not executed: {why}.", "Ask for permission and run it in the agent's own program, or write it more plainly."
    )
