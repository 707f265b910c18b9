"""``oneshot sign-rearm``: signs exactly what stands on stdin with operator keys, and prints the signatures. Needs no daemon."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from console.api.message import Reason, Request
from console.domain.errors import Denied, UsageProblem
from console.domain.message import Malformed
from console.remotekill.document import Signer, signatures_over
from console.remotekill.keys import load_key_files, load_keys, load_signers
from console.remotekill.rearming import statement
from console.settings.places import Places

MOST = 64 * 1024


class _What(Request, kw_only=True):
    instance: Annotated[str, Meta(pattern=r"^[0-9a-f]{8}\Z")]
    generation: Annotated[int, Meta(ge=0)]
    kills: Annotated[list[str], Meta(min_length=1, max_length=1000)]
    nonce: Annotated[str, Meta(pattern=r"^[0-9a-f]{32}\Z")]
    reason: Reason


def sign_rearm_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes besides --state-dir."""
    parser.add_argument("--keys", help="folder of the private keys; without: those of this instance")
    parser.add_argument("--key", action="append", default=[], metavar="FILE", help="a further private key; repeatable")


def sign_rearm(places: Places | None, given: argparse.Namespace) -> int:
    """One JSON object: ``{"signatures": [{"kid", "alg", "sig"}]}``."""
    assert places is not None
    try:
        what = _What.read_json(sys.stdin.buffer.read(MOST))
    except Malformed as error:
        raise UsageProblem("What is to be signed cannot be read.", "watchfloor rearm --sign writes it.") from error
    signers = _signers(places, given.keys, given.key)
    if not signers:
        raise Denied(
            "There is no private key here to sign with.",
            "Name its file with --key, its folder with --keys, or make one: watchfloor secrets keys init",
        )
    print(json.dumps({"schema_version": 1, "signatures": signatures_over(statement(**what.as_data()), signers)}))
    return 0


def _signers(places: Places, folder: str | None, files: list[str]) -> list[Signer]:
    """Each key once. What this host trusts is in its own folder; the private keys may be with a person each."""
    trusted = load_keys(places.keys_dir)
    own = load_key_files(sorted(Path(folder).glob("*.key")), trusted) if folder else load_signers(places.keys_dir)
    return list({s.kid: s for s in [*own, *load_key_files([Path(f) for f in files], trusted)]}.values())
