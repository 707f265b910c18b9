"""Keep the rules in force for this instance, and check calls by them. A file that breaks changes nothing but raises an alarm.

The rules are ``policy.json`` of the state directory, else the product's own. The last good bytes are kept beside the file. So a restart
with a broken file allows neither more nor less than before. Without any good bytes everything is denied.
"""

from __future__ import annotations

import os
import posixpath
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from console.api.policy import policy_data
from console.domain.agent import Agent, AgentId, SandboxKind
from console.domain.calls.approval import AskedPart
from console.domain.calls.permission import Decision, PermissionRequest, Verdict
from console.domain.calls.profile import is_contained
from console.domain.errors import ConsoleError
from console.domain.ids import ControlLevel
from console.killswitch.kernel import processes
from console.policy.dangers import Danger
from console.policy.files.disk import Disk
from console.policy.files.paths import TEXT_MAX, Facts, Files, NoFiles
from console.policy.files.walk import Listing
from console.policy.git.calls import Known, NothingKnown, judge_git
from console.policy.judge import Call, Context, judge, tool_named
from console.policy.review.lint import Severity, lint
from console.policy.rules.declared import Declared
from console.policy.rules.last_good import Kept
from console.policy.rules.loading import MAX_BYTES, read_settings
from console.policy.rules.profiles import WORK, Profile, Standing, observed
from console.policy.rules.verdicts import NO_RULE, Judgement, Part
from console.policy.scopes import ALL, read_scopes
from console.policy.shell.check import Policy
from console.services.policy.config_fallback import LastGood
from console.services.policy.evaluate import Judged
from console.services.policy.exact_rules import ExactRules
from console.services.policy.matrix import MatrixDesk
from console.services.policy.profiles import Profiles
from console.services.policy.sequences import SequenceDesk
from console.settings.places import Places

COMPILED_MAX = 64
"""Policies kept compiled: one for each session that asks."""
PARTS_MAX = 200


@dataclass(frozen=True, slots=True)
class _Stamp:
    """What tells one version of the file from another without reading it."""

    inode: int = 0
    size: int = -1
    mtime_ns: int = 0
    ctime_ns: int = 0


_FOLDERS = frozenset(
    f"/{name}" for name in ("", "bin", "boot", "dev", "etc", "home", "lib", "lib64", "media", "mnt", "opt", "proc", "root", "run", "sbin")
) | frozenset(
    f"/{name}" for name in ("srv", "sys", "tmp", "usr", "usr/bin", "usr/lib", "usr/local", "usr/sbin", "usr/share", "var", "var/lib")
)
"""Folders of every Linux system (Filesystem Hierarchy Standard 3.0): what happens to one happens to all that lies below it."""


_NO_SESSION = NothingKnown()


class _Container:
    """A container's own file system: read-only but for its workspace, which lies here. What is not in the workspace is what it says."""

    __slots__ = ("_workspace", "_disk", "_nothing")

    def __init__(self, workspace: Path) -> None:
        self._workspace, self._disk, self._nothing = f"{workspace}/", Disk(), NoFiles()

    def look(self, path: str) -> Facts:
        if self._is_inside(path):
            return self._disk.look(path)
        flat = posixpath.normpath(path)
        return Facts(flat, "folder") if flat in _FOLDERS else self._nothing.look(path)

    def stamp(self, folder: str) -> tuple[int, ...] | None:
        return None

    def listing(self, folder: str) -> Listing:
        return self._disk.listing(folder) if self._is_inside(folder) else Listing(state="unreadable")

    def text(self, path: str, most: int = TEXT_MAX) -> str | None:
        return self._disk.text(path, most) if self._is_inside(path) else None

    def _is_inside(self, path: str) -> bool:
        return f"{posixpath.normpath(path)}/".startswith(self._workspace)


def files_of(agent: Agent, workspace: Path) -> Files:
    """The files that an agent sees."""
    return _Container(workspace) if agent.sandbox in (SandboxKind.DOCKER, SandboxKind.GVISOR) else Disk()


class PolicyDesk:
    """Thread-safe: calls are judged in threads."""

    __slots__ = (
        "_last", "sequences", "matrix", "_lock", "_stamp", "kept", "_begun", "_compiled", "_said", "_file", "_name", "_workspaces",
        "_alarm", "_declared_of", "_known_of", "_profiles", "dangers", "_above", "_exact"
    )  # fmt: skip

    def __init__(
        self,
        places: Places,
        alarm: Callable[[str], None],
        dangers: Callable[[], tuple[Danger, ...]],
        above: Callable[[AgentId], Agent | None],
        declared_of: Callable[[Agent], Declared | None] = lambda _agent: None,
        type_of: Callable[[Agent], str] = lambda _agent: "",
        known_of: Callable[[Agent], Known] = lambda _agent: _NO_SESSION,
        profiles: Profiles | None = None,
        exact: ExactRules | None = None,
    ) -> None:
        """``dangers``: what asks whatever the rules say. ``above`` finds a parent. ``profiles`` None: there are none."""
        self._file, self._name = places.policy_file, str(places.policy_file)
        self._last = LastGood(self._file, self._file.with_name(".policy-last-good.json"), alarm)
        self._workspaces, self._alarm = places.workspaces_dir, alarm
        self._declared_of, self._known_of, self._profiles, self._exact = declared_of, known_of, profiles, exact
        self.dangers, self._above = dangers, above
        self.sequences = SequenceDesk(places, alarm)
        self.matrix = MatrixDesk(places, alarm, type_of)
        self._lock = threading.Lock()
        self._stamp: _Stamp | None = None
        self.kept = Kept()
        self._begun: dict[str, Known] = {}
        """By session: of which the repository was looked at."""
        self._compiled: dict[tuple[bytes, str, str, str], Policy] = {}
        self._said: tuple[Declared | None, str] = (None, repr(None))
        with suppress(OSError):
            self.kept = self.kept.offered(self._last.read())
        self._look()

    @property
    def problem(self) -> str:
        """Why the newest file is not in force; empty: it is."""
        with self._lock:
            return self.kept.problem or self._last.trouble

    def judge(self, agent: Agent, request: PermissionRequest) -> Judged:
        """The verdict now. Never raises: what cannot be judged is denied."""
        try:
            return self._judge(agent, request)
        except (ConsoleError, OSError, ValueError, RecursionError) as error:
            return Judged(Decision(Verdict.DENY, "policy", f"it could not be checked: {error}"))

    def current(self) -> Kept:
        """The rules in force now."""
        self._look()
        with self._lock:
            return self.kept

    def look(self) -> None:
        """Takes up a file that was changed."""
        self._look()

    def _judge(self, agent: Agent, request: PermissionRequest) -> Judged:
        self._look()
        found = self.judgement(agent, request)
        parts = tuple(AskedPart(p.text, p.verdict.value, p.rule, p.step, p.reason, p.danger) for p in _worst_first(found.parts))
        made = Judged(Decision(found.verdict, found.rule, found.reason), parts, steps=found.steps)
        if found.verdict is Verdict.DENY:
            return made
        tool = tool_named(Call(request.tool, request.argument, detail=request.detail), policy_data.tools())
        return replace(made, matches=self.sequences.matches(request, tool, found, files_of(agent, self.workspace_of(agent))))

    def judgement(self, agent: Agent, request: PermissionRequest, data: bytes | None = None, tried: Profile | None = None) -> Judgement:
        """Every part of a verdict, by the rules in force, or by ``data`` or the profile ``tried`` instead. Blocks. Raises ConsoleError."""
        workspace = self.workspace_of(agent)
        contained = agent.sandbox in (SandboxKind.DOCKER, SandboxKind.GVISOR)
        call = Call(request.tool, request.argument, params=_size(request, workspace, contained), detail=request.detail)
        own = agent.control_level is not ControlLevel.OBSERVED
        context = Context(
            policy=self._policy(agent, workspace, data, tried),
            files=files_of(agent, workspace),
            tools=policy_data.tools(),
            scopes=ALL if agent.scopes is None else read_scopes(agent.scopes),
            sensitivity=agent.sensitivity,
            matrix=self.matrix.of(agent, str(workspace)),
            cwd=request.cwd or str(workspace),
            problem=self.problem,
            known=self._known(agent, workspace),
        )
        found = self._judged(call, context, agent)
        found = _held(found, request, agent, workspace, context.files) if own else found
        found = self._exact.answer(found, request, str(workspace)) if self._exact is not None else found
        profile = context.policy.profile if context.policy is not None else None
        return observed(found) if profile is not None and profile.observes else found

    def _judged(self, call: Call, context: Context, agent: Agent) -> Judgement:
        """By the standing of an agent; what a human accepted for its session is looked up only where it decides."""
        found = judge(call, replace(context, standing=Standing.CONTAINED if is_contained(agent) else Standing.OPEN))
        asks = any(part.rule == WORK and part.verdict is Verdict.ASK for part in found.parts)
        if asks and self._profiles is not None and self._profiles.is_accepted(agent):
            return judge(call, replace(context, standing=Standing.ACCEPTED))
        return found

    def _known(self, agent: Agent, workspace: Path) -> Known:
        """What is known of the session's beginning; with its first call, what its own repository names is looked at."""
        known = self._known_of(agent)
        if self._begun.get(agent.context_id) is not known:
            while len(self._begun) >= COMPILED_MAX * 8:
                del self._begun[next(iter(self._begun))]
            self._begun[agent.context_id] = known
            judge_git(str(workspace), str(workspace), Disk(), known, "")
        return known

    def workspace_of(self, agent: Agent) -> Path:
        """What ``${WORKSPACE}`` is for an agent: its session's workspace; of one that is only seen, the folder its process works in."""
        if agent.control_level is ControlLevel.OBSERVED:
            return working_folder(agent, self._above)
        return self._workspaces / agent.context_id

    def _policy(self, agent: Agent, workspace: Path, data: bytes | None, tried: Profile | None) -> Policy | None:
        declared, dangers = self._declared_of(agent), self.dangers()
        words = self._words_of(declared)
        profile = tried or (self._profiles.of(agent, self.kept) if self._profiles is not None and data is None else None)
        with self._lock:
            good = data if data is not None else policy_data.profile_rules(profile.name) if profile is not None else self.kept.good
            if data is None and profile is None and (self.kept.settings is None or self._last.trouble):
                return None
            context_id = agent.context_id if agent.control_level is not ControlLevel.OBSERVED else ""
            kind = f"{words} {id(dangers)} {profile.name if profile else ''}"  # a policy that is kept keeps its list
            key = (good, context_id, str(workspace), kind)
            found = self._compiled.get(key)
        if found is None:
            settings = read_settings(good, context_id, str(workspace))
            found = Policy(settings, policy_data.catalogue(), dangers, declared, profile)
            with self._lock:
                while len(self._compiled) >= COMPILED_MAX:
                    del self._compiled[next(iter(self._compiled))]
                self._compiled[key] = found
        return found

    def _words_of(self, declared: Declared | None) -> str:
        """All that is declared, as text: the same for equal ones. Of the same object it is made once."""
        before, words = self._said
        if before is not declared:
            words = repr(declared)
            self._said = (declared, words)
        return words

    def _look(self) -> None:
        """Takes up a file that was changed. One ``stat`` when it was not."""
        stamp, data, trouble = self._newest()
        with self._lock:
            self._last.settle()
            if stamp == self._stamp:
                return
            self._stamp = stamp
            before = self.kept
            self.kept = before.lost(trouble) if data is None else before.offered(data)
            after = self.kept
            self._compiled.clear()
        if after.problem and after.problem != before.problem:
            kept_words = "the last good rules stay in force" if after.settings is not None else "everything is denied"
            self._alarm(f"{self._file}: {after.problem} {kept_words}.")
        if not after.problem and after.settings is not None and after.good != policy_data.default_rules():
            asleep = [one.rule for one in lint(after.settings, policy_data.catalogue()) if one.severity is Severity.REFUSED]
            if asleep:
                self._alarm(f"{self._file}: {len(asleep)} rules swallow what is denied and are not in force: {', '.join(asleep)[:300]}.")
        if not after.problem and after.good != before.good:
            self._keep(after.good)

    def _keep(self, good: bytes) -> None:
        with self._lock:
            self._last.keep(good)
            trouble = self._last.trouble
        if trouble:
            self._alarm(f"{self._file}: {trouble}")

    def _newest(self) -> tuple[_Stamp, bytes | None, str]:
        try:
            seen = os.stat(self._name)  # noqa: PTH116 - in every judgement; of what it leads to: rules that were changed behind a link are new rules
        except FileNotFoundError:
            if self._file.is_symlink():
                return _Stamp(size=-3), None, "it is a link to nothing;"
            if self.kept.good not in (b"", policy_data.default_rules()):
                # Rules that were in force are gone: that is no reason to go back to others, which may allow more.
                return _Stamp(), None, "it is gone. Put it back, or write the rules that are wanted there;"
            return _Stamp(), policy_data.default_rules(), ""
        except OSError as error:
            return _Stamp(size=-2), None, f"it cannot be looked at: {error.strerror}"
        stamp = _Stamp(seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
        if stamp == self._stamp:
            return stamp, None, ""
        if not stat.S_ISREG(seen.st_mode):
            return stamp, None, "it is no plain file;"
        try:
            with open(os.open(self._file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123 - a pipe by now waits for nobody
                return stamp, file.read(MAX_BYTES + 1), ""
        except OSError as error:
            return stamp, None, f"it cannot be read: {error.strerror}"


def _worst_first(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """In their order; where there are more than are kept, those that deny or ask go before those that allow."""
    if len(parts) <= PARTS_MAX:
        return parts
    rank = {Verdict.DENY: 0, Verdict.ASK: 1, Verdict.ALLOW: 2}
    return tuple(sorted(parts, key=lambda part: rank[part.verdict])[:PARTS_MAX])


def _held(found: Judgement, request: PermissionRequest, agent: Agent, workspace: Path, files: Files) -> Judgement:
    """What holds for agents of ours beside the rules: a rollback record for each file that goes, and the allowlist for each host."""
    if request.tool in ("write_file", "delete_file") and found.verdict is not Verdict.DENY and not _is_inside(request, workspace, files):
        reason = "it lies outside the session's workspace, where no rollback record can be kept"
        return replace(found, verdict=Verdict.DENY, rule="rollback record", reason=reason, steps=())
    if request.tool == "http_request" and found.verdict is Verdict.ASK and found.rule == NO_RULE:
        # The allowlist is a reviewed list of hosts: what no rule names is decided there, when the call is permitted.
        how = "not inspected" if not agent.effective_mode.is_restricted else "the allowlist decides"
        return replace(found, verdict=Verdict.ALLOW, rule="allowlist", reason=how)
    return found


def _size(request: PermissionRequest, workspace: Path, contained: bool) -> dict[str, object]:
    """Of a file that is to be read, as it is now; unknown in a container, and of what is no file."""
    tool = tool_named(Call(request.tool, request.argument), policy_data.tools())
    if tool.family != "file" or tool.action != "read" or contained:
        return {}
    path = request.argument.removeprefix("read:") if request.tool == "file" else request.argument
    try:
        seen = (Path(request.cwd or workspace) / path).stat()
    except (OSError, ValueError):
        return {}
    return {"size": seen.st_size} if stat.S_ISREG(seen.st_mode) else {}


def _is_inside(request: PermissionRequest, workspace: Path, files: Files) -> bool:
    path = request.argument if request.argument.startswith("/") else f"{request.cwd or workspace}/{request.argument}"
    real, root = files.look(path).real, files.look(str(workspace)).real
    return bool(real and root) and real.startswith(root.rstrip("/") + "/")


# --- Where an agent that is only seen works: its process's own folder, by the kernel's word; a transcript is the agent's to write.


NOWHERE = Path("/nonexistent")
"""No rule on a workspace holds for anything: what it would allow asks."""
_LEVELS = 40


def working_folder(agent: Agent, above: Callable[[AgentId], Agent | None]) -> Path:
    """The folder of its process, or, of a sub-agent, of the process that it runs in; NOWHERE when that is not known for certain.

    Never ``/``: everything lies below that. ``above`` finds a parent by its id.
    """
    found: Agent | None = agent
    for _ in range(_LEVELS):
        if found is None or found.process is not None:
            break
        found = above(found.parent_id) if found.parent_id is not None else None
    if found is None or found.process is None:
        return NOWHERE
    pid = found.process.pid
    try:
        folder = Path(f"/proc/{pid}/cwd").readlink()
        # In a mount namespace of its own the same words are another folder.
        is_here = Path(f"/proc/{pid}/ns/mnt").stat().st_ino == Path("/proc/self/ns/mnt").stat().st_ino
    except OSError:
        return NOWHERE
    is_one = folder.is_absolute() and folder != Path("/") and not folder.name.endswith(" (deleted)")
    is_same = processes.start_ticks(pid) == found.process.start_ticks  # looked at last: the pid was its own all the while
    return folder if is_one and is_here and is_same else NOWHERE
