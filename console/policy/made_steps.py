"""What is executed of a command that was judged: its file as it was looked at, and variables without which it would run others."""

from __future__ import annotations

from console.policy.argv import read_argv
from console.policy.commands import Program, find_program
from console.policy.git.calls import overrides
from console.policy.paths import Files, absolute
from console.policy.programs import Catalogue, Description
from console.policy.verdicts import Redirect, Step

DEPTH = 6
"""Commands within commands."""


class StepMaker:
    """By one catalogue of programs and one disk."""

    def __init__(self, catalogue: Catalogue, files: Files) -> None:
        self._catalogue, self._files = catalogue, files

    def made(self, argv: tuple[str, ...], program: Program, cwd: str, joined: str = "", redirects: tuple[Redirect, ...] = ()) -> Step:
        """The step of one command; ``joined`` as in ``Step``."""
        facts = program.facts
        file = (*facts.inode, facts.changed_ns) if facts is not None and facts.inode is not None else None
        return Step(argv, program.path, cwd, joined, redirects, self.environment(argv, program, cwd), file)

    def environment(self, argv: tuple[str, ...], program: Program, cwd: str, depth: int = 0) -> tuple[tuple[str, str], ...]:
        """Variables without which it, or what it runs in its turn, would run others. ``depth``: commands around it."""
        described = self._catalogue.of(program.name)
        if described is None or described.operands[:1] != ("inner",) or depth > DEPTH:
            return self._own(argv, described, cwd) if described else ()
        inners = [inner for inner in read_argv(argv, described).inners if inner and inner[0]]
        found = [self.environment(inner, find_program(inner[0], cwd, self._files), cwd, depth + 1) for inner in inners]
        return tuple(dict.fromkeys(pair for pairs in found for pair in pairs))

    def _own(self, argv: tuple[str, ...], described: Description, cwd: str) -> tuple[tuple[str, str], ...]:
        """A program's own variables; git's with settings that take from the repository there whatever would run a program."""
        known = dict(described.environment)
        if "GIT_CONFIG_COUNT" not in known:
            return described.environment
        count = int(known["GIT_CONFIG_COUNT"])
        for key, value in overrides(absolute(read_argv(argv, described).base or ".", cwd), self._files):
            known |= {f"GIT_CONFIG_KEY_{count}": key, f"GIT_CONFIG_VALUE_{count}": value}
            count += 1
        return tuple({**known, "GIT_CONFIG_COUNT": str(count)}.items())
