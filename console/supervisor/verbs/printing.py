"""What verbs without a daemon print: words for people, one JSON object for programs."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from console.domain.errors import ConsoleError


def show(given: argparse.Namespace, data: dict[str, Any], lines: list[str]) -> None:
    """Words, or one JSON object with --json. A reader that goes away is no error: the exit code stays the verb's own."""
    try:
        print(json.dumps({"schema_version": 1} | data, default=str) if given.json else "\n".join(lines), flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(error: ConsoleError, rest: list[str]) -> None:
    """What is wrong and what to do, on stderr; with --json among the verb's arguments one JSON object on stdout too."""
    for lead, words in (("error: ", error.what), ("  ", error.remedy)):
        if words:
            print(f"{lead}{_visible(words)}", file=sys.stderr)
    if "--json" in rest:
        print(json.dumps({"schema_version": 1, "error": error.what, "remedy": error.remedy, "exit_code": int(error.exit_code)}))


def _visible(words: str) -> str:
    """Names are an agent's, or a bucket's: nothing of them acts on a terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in words[:2000])
