"""What is wrong with a policy that can be read: rules that swallow what others deny, that never decide, that say less than they seem."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from console.policy.rules.loading import Settings
from console.policy.rules.mcp import covers
from console.policy.rules.rule import Family, Rule
from console.policy.shell.programs import Catalogue, Description


class Severity(StrEnum):
    """How serious a finding is.

    ``refused``: the rule is not in force until it is marked unconfined. ``warning``: check it. ``note``: as the author wanted it.
    """

    REFUSED = "refused"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know about one rule."""

    severity: Severity
    kind: str
    """The list it is in: ``deny``, ``ask`` or ``allow``."""
    rule: str
    what: str
    swallows: tuple[str, ...] = ()
    """The deny rules that a call it allows could break."""

    def as_json(self) -> dict[str, Any]:
        """As ``policy lint`` shows it."""
        told = {"severity": self.severity.value, "list": self.kind, "rule": self.rule, "what": self.what}
        return {**told, "swallows": list(self.swallows)}


def lint(settings: Settings, catalogue: Catalogue) -> tuple[Finding, ...]:
    """All findings, the refused first."""
    found: list[Finding] = []
    for rule in settings.allow:
        found += _of_shell(rule, settings, catalogue) if rule.family is Family.SHELL else _of_file(rule, settings)
        found += _never(rule, settings)
    for kind, rules in (("deny", settings.deny), ("ask", settings.ask), ("allow", settings.allow)):
        for rule in rules:
            if rule.family is Family.FILE and rule.text.endswith(":*)"):
                found.append(Finding(Severity.WARNING, kind, rule.text, f"':*' means nothing after a glob; it is read as {rule.pattern}"))
    order = list(Severity)
    return tuple(sorted(found, key=lambda one: order.index(one.severity)))


def swallowed_by(rule: Rule, settings: Settings, catalogue: Catalogue) -> tuple[str, tuple[str, ...]]:
    """Why an allow rule swallows denials, and which; an empty reason: it does not."""
    if not rule.words:
        return "it allows every program", tuple(one.text for one in settings.deny)
    name = posixpath.basename(rule.words[0])
    described = catalogue.of(name) or Description()
    if name == "find" and len(rule.words) == 1:
        return "find runs programs (-exec), deletes and writes (-delete, -fprint)", _shell_and_files(settings)
    if described.swallows and described.is_described:
        return f"{name} {described.swallows}", _shell_and_files(settings)
    if described.swallows:
        return f"{name} {described.swallows}", tuple(one.text for one in settings.deny)
    if _is_own(rule, settings):
        return f"{rule.words[0]} is a file that agents can change", tuple(one.text for one in settings.deny)
    return "", ()


def _shell_and_files(settings: Settings) -> tuple[str, ...]:
    return tuple(one.text for one in settings.deny if one.family is Family.SHELL or (one.family is Family.FILE and one.action != "read"))


def _is_own(rule: Rule, settings: Settings) -> bool:
    """A program that is named by a path in the workspace, or relative to it."""
    first = rule.words[0]
    return "/" in first and (not first.startswith("/") or first.startswith((settings.workspace + "/", "/tmp/", "/home/")))  # noqa: S108


def _of_shell(rule: Rule, settings: Settings, catalogue: Catalogue) -> Iterator[Finding]:
    why, lost = swallowed_by(rule, settings, catalogue)
    if why and rule.unconfined:
        yield Finding(Severity.NOTE, "allow", rule.text, f"marked unconfined: {why}", lost)
    elif why:
        yield Finding(Severity.REFUSED, "allow", rule.text, f"{why}; mark it in permissions.unconfined, or leave it out", lost)
    elif rule.words and not (described := catalogue.of(posixpath.basename(rule.words[0]))):
        what = "what its arguments do is not described: a call of it asks a human unless the rule is marked unconfined"
        yield Finding(Severity.WARNING, "allow", rule.text, what)
    elif rule.words[:1] in (("pip",), ("pip3",)) and "install" in rule.words[1:2]:
        yield Finding(
            Severity.WARNING, "allow", rule.text, "a package runs code of its own when it is installed; sources.json says which exist"
        )
    elif described is not None and described.commands and len(rule.words) == 1:
        yield Finding(Severity.WARNING, "allow", rule.text, f"it allows every described subcommand of {rule.words[0]}")


def _of_file(rule: Rule, settings: Settings) -> Iterator[Finding]:
    if rule.family is Family.NETWORK and rule.pattern == "*":
        yield Finding(Severity.WARNING, "allow", rule.text, "it allows every host")
    if rule.family is Family.MCP and rule.words[0] == "*" and "*" in rule.words[1]:
        yield Finding(Severity.WARNING, "allow", rule.text, "it allows tools of every server, those that a project adds too")
    if rule.family is Family.FILE and rule.stem == "/" and rule.pattern.startswith("/"):
        lost = tuple(one.text for one in settings.deny if one.family is Family.FILE and one.action == rule.action)
        yield Finding(Severity.WARNING, "allow", rule.text, "it reaches over the whole disk; only deny rules stop it", lost)


def _never(rule: Rule, settings: Settings) -> Iterator[Finding]:
    for one in settings.deny:
        if one.family is rule.family and _covers(one, rule):
            yield Finding(Severity.WARNING, "allow", rule.text, f"it never decides: {one.text} denies all of it")
            return
    if rule.words[:2] == ("git", "clone") or rule.words[:1] in (("curl",), ("wget",)):
        for one in settings.deny:
            if one.family is Family.NETWORK and one.pattern == "*" and one.port is None:
                yield Finding(Severity.WARNING, "allow", rule.text, f"it reaches no host: {one.text} denies them all")
                return


def _covers(deny: Rule, allow: Rule) -> bool:
    match deny.family:
        case Family.SHELL:
            return deny.open_end and allow.words[: len(deny.words)] == deny.words
        case Family.NETWORK:
            return deny.port in (None, allow.port) and (deny.pattern == "*" or deny.pattern == allow.pattern)
        case Family.FILE:
            return deny.action == allow.action and deny.pattern == allow.pattern
        case Family.MCP:
            return covers(deny, *allow.words)
