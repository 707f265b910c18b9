"""A policy with the product's own data, judged on the small disk or on the machine's."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from console.domain.network import Sensitivity
from console.domain.process.assets import resource
from console.policy.dangers import Danger, read_dangers
from console.policy.files.paths import Files
from console.policy.judge import Call, Context, judge
from console.policy.matrix import Matrix
from console.policy.rules.declared import Declared
from console.policy.rules.loading import Settings, read_settings
from console.policy.rules.verdicts import Judgement
from console.policy.scopes import ALL, Scope
from console.policy.shell.check import Policy
from console.policy.shell.programs import Catalogue, read_catalogue
from console.policy.tools.catalogue import Tools, read_tools
from tests.fakes.policy_disk import PolicyDisk

DATA = Path(__file__).resolve().parents[1] / "data" / "policy"


def data(name: str) -> Any:
    return json.loads(resource("policy", name).read_text())


@functools.cache
def catalogue() -> Catalogue:
    return read_catalogue(data("programs.json"))


@functools.cache
def dangers() -> tuple[Danger, ...]:
    return read_dangers(data("dangers.json"), "dangers.json")


@functools.cache
def tools() -> Tools:
    return read_tools(data("tools.json"))


def rules(**lists: list[str]) -> Settings:
    """Settings of some rules: ``rules(allow=["shell(cat:*)"])``."""
    return read_settings(json.dumps({"context_workspace": "/workspace", "permissions": lists}).encode())


def context(settings: Settings, files: Files | None = None, **more: Any) -> Context:
    declared: Declared | None = more.get("declared")
    matrix: Matrix | None = more.get("matrix")
    scopes: frozenset[Scope] = more.get("scopes", ALL)
    policy = Policy(settings, catalogue(), dangers(), declared)
    return Context(policy, files or PolicyDisk(), tools(), scopes, more.get("sensitivity", Sensitivity.PUBLIC), matrix)


def told(made: Context, tool: str, argument: str, **more: Any) -> Judgement:
    return judge(Call(tool, argument, **more), made)
