"""Whether a limit on cost can be measured for what is about to start: a limit that nothing measures would never halt anything."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from console.domain.agent import LaunchRequest, ProcessIdentity, SandboxKind
from console.domain.errors import UsageProblem
from console.domain.spend import Answer, Tokens
from console.sources.kind import Kind, Lacks
from console.sources.kinds import KINDS, VENDORS
from console.sources.processes import ProcessFacts
from console.sources.spend.rates import RateBook

REMEDY = "Limit its time (--limit wall=SECONDS), or add --unmeasured: the limit on cost is then shown as not measured."
SELF_REPORTED = "the limit on cost counts only what the program itself reports; --limit wall=SECONDS holds for any program"
"""For a program of no known kind: it may report its usage at its agent socket or by telemetry, or never."""
_SHEBANG_MAX = 256


def kind_of(argv: tuple[str, ...], *, looks_here: bool = True) -> Kind | None:
    """The agent kind that a command line runs, or None. ``looks_here``: its program is one of this machine's files. Blocks."""
    for facts in _as_processes(argv, looks_here=looks_here):
        found = next((kind for kind in KINDS if kind.program.is_run_by(facts)), None)
        if found is not None:
            return found
    return None


def why_unmeasured(request: LaunchRequest) -> str:
    """Why nothing measures the cost of what this starts, or empty. Blocks."""
    kind = _kind_of(request)
    return f"nothing reads what {kind.program.title} spends: {kind.why_unread}" if kind is not None and kind.why_unread else ""


def why_unpriced(request: LaunchRequest, program: str, model: str) -> str:
    """Return why the spend of a started program with this model cannot be known, or empty. Blocks: the price table may be loaded."""
    kind = next(kind for kind in KINDS if kind.name == program)
    says_cost = not isinstance(kind.start, Lacks) and kind.start.says_cost
    if not model or says_cost or not caps_cost(request) or isinstance(kind.transcripts, Lacks):
        return ""
    asked = Answer(kind.transcripts.source, "", time.time(), model, "", "", "", "", Tokens(1))
    return "" if RateBook(VENDORS).price(asked) is not None else f"no price is known of the model {model}"


def check(request: LaunchRequest, why: str) -> None:
    """Raises UsageProblem for a limit on cost that cannot be measured because of ``why``, unless it was accepted as unmeasured."""
    if why and not request.unmeasured and caps_cost(request):
        raise UsageProblem(f"The limit on cost cannot be measured, because {why}.", REMEDY)


def caps_cost(request: LaunchRequest) -> bool:
    """Whether it asks for a limit on cost, of the agent or of its tree."""
    return request.limits.cost_usd is not None or request.tree_limits.cost_usd is not None


def note(request: LaunchRequest) -> str:
    """What a person should know of the limit on cost of what was started, or empty. Blocks."""
    if not caps_cost(request):
        return ""
    if why := why_unmeasured(request):
        return f"the limit on cost is not measured: {why}"
    return "" if _kind_of(request) is not None else SELF_REPORTED


def _kind_of(request: LaunchRequest) -> Kind | None:
    return kind_of(request.argv, looks_here=request.sandbox in (SandboxKind.NONE, SandboxKind.BUBBLEWRAP))


def _as_processes(argv: tuple[str, ...], *, looks_here: bool) -> list[ProcessFacts]:
    """What the kernel would say of it once it runs: by its own name, by the file that is found, and by the interpreter of a script."""
    names = [argv[0]]
    found = shutil.which(argv[0]) if looks_here else None
    if found is not None:
        names += [found, str(Path(found).resolve())]
    seen = [_facts(name, (name, *argv[1:])) for name in dict.fromkeys(names)]
    if len(names) > 1 and (interpreter := _interpreter_of(Path(names[-1]))):
        seen += [_facts(interpreter, (interpreter, name, *argv[1:])) for name in names[1:]]
    return seen


def _facts(exe: str, argv: tuple[str, ...]) -> ProcessFacts:
    return ProcessFacts(ProcessIdentity(0, 0), (0, 0), exe, argv, "")


def _interpreter_of(file: Path) -> str:
    """The program that runs a script, by its first line (execve(2)); empty: it is none, or cannot be read."""
    try:
        with file.open("rb") as source:
            line = source.readline(_SHEBANG_MAX)
    except OSError:
        return ""
    if not line.startswith(b"#!"):
        return ""
    words = line[2:].decode("utf-8", "replace").split()
    if words and words[0].rpartition("/")[2] == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return words[0] if words else ""
