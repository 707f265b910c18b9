"""What a document shows: the commands that a shell would run, and what they print."""

from __future__ import annotations

import re
import shlex


def commands_of(text: str) -> list[list[str]]:
    """Return the words of each command of Watchfloor in the blocks that a shell would run."""
    found = []
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        line = ""
        for part in block.replace("\\\n", " ").splitlines():
            line = f"{line}\n{part}" if line else part
            lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            try:
                words = list(lexer)
            except ValueError:  # a quotation mark is still open: the next line belongs to it
                continue
            line = ""
            for command in _split(words):
                command = command[1:] if command[:1] in (["until"], ["sudo"]) else command
                if command[:1] == ["watchfloor"]:
                    found.append(command[1:])
    return found


def _split(words: list[str]) -> list[list[str]]:
    commands: list[list[str]] = [[]]
    for word in words:
        if word in (";", "&&", "||", "|"):
            commands.append([])
        elif word in ("<", ">"):
            commands.append(["(a file)"])
        else:
            commands[-1].append(word)
    return commands


def printed_by(text: str) -> list[str]:
    """Return the lines of the blocks without a language: what a reader sees after the commands."""
    blocks = re.findall(r"(?m)^```(\w*)\n(.*?)^```", text, re.DOTALL)
    return [line for language, block in blocks if not language for line in block.splitlines() if line.strip()]
