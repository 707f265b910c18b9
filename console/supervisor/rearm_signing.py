"""``oneshot sign-rearm``: signs exactly what stands on stdin with operator keys, and prints the signatures. Needs no daemon."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from console.domain.errors import Denied, UsageProblem
from console.remotekill.keys import load_signers
from console.remotekill.rearming import sign_statement, statement
from console.settings.places import Places

MOST = 64 * 1024


class _What(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    instance: str = Field(pattern=r"^[0-9a-f]{8}$")
    generation: int = Field(ge=0)
    kills: list[str] = Field(min_length=1, max_length=1000)
    nonce: str = Field(pattern=r"^[0-9a-f]{32}$")
    reason: str = Field(min_length=1, max_length=500)


def sign_rearm_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes besides --state-dir."""
    parser.add_argument("--keys", help="folder of the private keys; without: those of this instance")


def sign_rearm(places: Places | None, given: argparse.Namespace) -> int:
    """One JSON object: ``{"signatures": [{"kid", "alg", "sig"}]}``."""
    assert places is not None
    try:
        what = _What.model_validate_json(sys.stdin.buffer.read(MOST))
    except ValidationError as error:
        raise UsageProblem("What is to be signed cannot be read.", "watchfloor rearm --sign writes it.") from error
    signers = load_signers(Path(given.keys) if given.keys else places.keys_dir)
    if not signers:
        raise Denied("There is no private key here to sign with.", "Name its folder with --keys, or make one: watchfloor keys init")
    print(json.dumps({"schema_version": 1, "signatures": sign_statement(statement(**what.model_dump()), signers)}))
    return 0
