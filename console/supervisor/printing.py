"""What verbs without a daemon print: words for people, one JSON object for programs."""

from __future__ import annotations

import argparse
import json
from typing import Any


def show(given: argparse.Namespace, data: dict[str, Any], lines: list[str]) -> None:
    """Words, or one JSON object with --json."""
    print(json.dumps({"schema_version": 1} | data, default=str) if given.json else "\n".join(lines))
