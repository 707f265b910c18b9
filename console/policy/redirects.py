"""A shell's redirect, judged as the read or write that it is."""

from __future__ import annotations

from dataclasses import replace

from console.domain.permission import Verdict
from console.policy.lexer import Target
from console.policy.paths import FileRules, Files, absolute
from console.policy.verdicts import Part, Redirect


def judge_redirect(target: Target, cwd: str, rules: FileRules, files: Files) -> tuple[Part, list[Redirect]]:
    """(the verdict, what becomes of descriptors: real paths or other descriptors); what is not certain is denied."""
    word, operator = target.word, target.operator
    descriptor = target.descriptor if target.descriptor is not None else (0 if operator.startswith("<") else 1)
    shown = f"{operator} {word.value}"
    if operator in (">&", "<&") and word.value in ("-", "0", "1", "2"):
        mode = "close" if word.value == "-" else "copy"
        moved = Redirect(descriptor, mode=mode, source=-1 if mode == "close" else int(word.value))
        return Part(shown, Verdict.ALLOW, "descriptors", "redirect", "one descriptor becomes another"), [moved]
    if word.pattern or word.tilde or operator == "<&" or (operator == ">&" and (word.value.isdigit() or target.descriptor is not None)):
        return Part(shown, Verdict.DENY, "static shell only", "redirect", "which file it names is not certain"), []
    use = "read" if operator == "<" else "write"
    mode = "read" if operator == "<" else "append" if ">>" in operator else "write"
    redirects = [Redirect(descriptor, files.look(absolute(word.value, cwd)).real, mode)]
    if operator.startswith("&") or operator == ">&":
        redirects.append(Redirect(2, mode="copy", source=1))
    return replace(rules.judge(use, word.value, cwd, files), step="redirect", action=use), redirects
