"""Roles of the host's instance. A role is given by membership in a group of this host; the kernel says who is a member."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from console.domain.errors import Denied

GROUP_FILE = Path("/etc/group")
"""Directory services are not asked: a kill must not wait for one."""
AGENTS_UID = 65534
"""The account of agents on the host's instance, unless settings name another. It has no role, whatever groups it is in."""
FOLDER = Path("/run/watchfloor")
"""Where members find the sockets of the host's instance. It holds nothing else."""


class Right(StrEnum):
    """A class of what can be asked for. Every route of operator.sock has exactly one."""

    READ = "read"
    EXPORT = "export"
    KILL = "kill"
    """Everything that only stops."""
    OPERATE = "operate"
    REARM = "rearm"
    RELEASE = "release"
    """Take a session's hold as evidence off."""
    SETTINGS = "settings"
    ADMINISTER = "administer"
    """Root alone."""


class Role(StrEnum):
    """What a group gives. The group is called ``watchfloor-ROLE``."""

    VIEWER = "viewer"
    AUDITOR = "auditor"
    RESPONDER = "responder"
    OPERATOR = "operator"

    @property
    def group(self) -> str:
        return f"watchfloor-{self.value}"


ALLOWS: dict[Role, frozenset[Right]] = {
    Role.VIEWER: frozenset({Right.READ}),
    Role.AUDITOR: frozenset({Right.READ, Right.EXPORT}),
    Role.RESPONDER: frozenset({Right.READ, Right.KILL}),
    Role.OPERATOR: frozenset({Right.READ, Right.KILL, Right.OPERATE}),
}
GIVEN_BY = {Right.READ: Role.VIEWER, Right.EXPORT: Role.AUDITOR, Right.KILL: Role.RESPONDER, Right.OPERATE: Role.OPERATOR}
"""The smallest role that has a right. The other rights are root's."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What one caller may do."""

    rights: frozenset[Right]
    roles: tuple[Role, ...] = ()
    """Empty for the owner of the instance, who has every right."""
    is_owner: bool = False


OWNER = Standing(frozenset(Right), (), True)


def member(roles: Iterable[Role]) -> Standing:
    """A member of the groups of these roles: the union of what they allow. Without a role: nothing."""
    held = tuple(role for role in Role if role in set(roles))
    return Standing(frozenset[Right]().union(*(ALLOWS[role] for role in held)), held)


def roles_of(groups: Collection[int], file: Path = GROUP_FILE) -> frozenset[Role]:
    """The roles that these group ids give. A group that is missing gives none, and so does a file that cannot be read."""
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError:
        return frozenset()
    ids = dict[str, int]()
    for line in lines:
        name, _, rest = line.partition(":")
        number = rest.split(":")[1] if rest.count(":") >= 2 else ""
        if number.isascii() and number.isdigit() and len(number) < 11:
            ids.setdefault(name, int(number))  # group(5); as getgrnam(3), the first line of a name counts
    return frozenset(role for role in Role if ids.get(role.group, 0) in groups and ids.get(role.group, 0) > 0)


def refusal(right: Right, command: str = "") -> Denied:
    """The one sentence for a role that is missing. ``command``: root's, where only root may."""
    role = GIVEN_BY.get(right)
    if role is None:
        return Denied(
            "Only root may do this on the host's instance.", f"Ask root to run: {command or 'sudo watchfloor, with the same words'}"
        )
    words = f"This needs the role {role.value}: you are not in the group {role.group}."
    return Denied(words, f"Ask root for: usermod --append --groups {role.group} YOU. Then log in again.")
