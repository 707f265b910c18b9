"""What is said around a rearm: what would be released, the proof of who asks, the passphrase, and agents started again one by one.

No validation error repeats what was given: a passphrase may be in it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from console.api.message import SCHEMA_VERSION, Request, View

Passphrase = Annotated[str, Meta(max_length=256)]
KillId = Annotated[str, Meta(max_length=64)]
Via = Literal["", "terminal", "console"]


class Signature(Request, kw_only=True):
    """One signature over the statement of a rearm (console/remotekill/rearming.py)."""

    kid: Annotated[str, Meta(max_length=64)]
    alg: Literal["Ed25519"] = "Ed25519"
    sig: Annotated[str, Meta(max_length=200)]


class RearmProof(Request, kw_only=True):
    """Who asks for a rearm, as far as that can be shown. Exactly one of passphrase, signatures or a typed id is used, in that order."""

    operator: Annotated[str, Meta(max_length=100)] = ""
    """The name the asker claims; the audit has the kernel's word beside it."""
    via: Via = ""
    """Where the id of the kill was typed by a person; empty: a program asks."""
    generation: int | None = None
    """The latch the operator looked at; refused when it moved on."""
    passphrase: Passphrase = ""
    signatures: Annotated[list[Signature], Meta(max_length=16)] = []
    nonce: Annotated[str, Meta(max_length=40)] = ""

    def __repr__(self) -> str:
        """Nothing of it: a passphrase may be in it."""
        return f"{type(self).__name__}(...)"


class PassphraseBody(Request, kw_only=True):
    """POST /api/passphrase. set: the first one, or a new one with the old; reset: by the owner of the state directory at a terminal."""

    action: Literal["set", "reset"]
    new: Passphrase = ""
    old: Passphrase = ""
    kill_id: KillId = ""
    """A reset while killed takes the typed id of the kill."""
    operator: Annotated[str, Meta(max_length=100)] = ""

    def __repr__(self) -> str:
        """Nothing of it: a passphrase may be in it."""
        return f"{type(self).__name__}(...)"


class PassphraseView(View, kw_only=True):
    """GET and POST /api/passphrase."""

    schema_version: int = SCHEMA_VERSION
    passphrase: Literal["set", "not_set", "broken", "unknown"]
    why: str = ""
    wrong: int = 0
    """Wrong attempts in a row."""
    wait_s: float = 0.0
    notes: list[str] = []


class KilledView(View, kw_only=True):
    """One kill that the latch covers. Reason and names are hostile text."""

    kill_id: str
    has_receipt: bool = True
    """False: a mark without a receipt, such as ``latch-unreadable``."""
    reason: str = ""
    by: str = ""
    order: str = ""
    """The remote order it obeyed, or empty."""
    pressed_at: float | None = None
    complete: bool = False
    verified_zero: bool = False
    exit_code: int = 9
    headline: str = ""
    """As its receipt has it; it may name programs of other people."""
    targets: int = 0
    proven: int = 0
    best_effort: list[str] = []
    """Agents that could not be proven dead by their nature."""
    survivors: list[str] = []
    bad_steps: list[str] = []
    """``name: status, detail`` of every step that is not ok."""


class AgainBody(Request, kw_only=True):
    """POST /api/agents/{id}/again."""

    dangerous_ok: Annotated[str, Meta(max_length=500)] = ""
    """Why it is started again though its words name dangerous operations; without it that is refused (428)."""


class AgainView(View, kw_only=True):
    """An agent that ran before the kill. Nothing starts it but a person, one by one."""

    id: str
    name: str = ""
    argv: list[str] = []
    session: str = ""
    parent_id: str | None = None
    state: str = ""
    again_as: str = ""
    """The id it was started again under, or empty."""
    why_not: str = ""


class RearmView(View, kw_only=True):
    """GET /api/kill-switch/rearm: what a rearm would release, what it takes, what speaks against it."""

    schema_version: int = SCHEMA_VERSION
    killed: bool
    instance: str = ""
    generation: int = 0
    kill_ids: list[str] = []
    kills: list[KilledView] = []
    to_type: str = ""
    """The id a person types where no passphrase is set."""
    nonce: str = ""
    passphrase: Literal["set", "not_set", "broken", "unknown"] = "unknown"
    passphrase_why: str = ""
    wait_s: float = 0.0
    reset_while_killed: bool = False
    quorum: int = 0
    """Operator keys a signature takes; 0: no keys are known here."""
    remote_latched: list[str] = []
    blockers: list[str] = []
    """What must be done first; with any of them a rearm is refused."""
    was_running: list[AgainView] = []
    was_running_left_out: int = 0
    """Agents beyond those listed: watchfloor fleet has them."""
