"""The operator's passphrase: scrypt (RFC 7914), kept away from the latch. Wrong attempts are counted on disk and slowed down.

The latch's folder holds a note that there is one, its file's SHA-256 and the count. So an attacker gains nothing by removing or replacing
the file, or by restarting the guard. Anything that cannot be read refuses (promise 2).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import stat
import time
import unicodedata
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from console.domain.errors import Conflict, Denied, NotRecorded, UsageProblem
from console.killswitch.store.atomic_file import Damaged, read_sealed, seal, write_whole

N, R, P = 2**15, 8, 1
"""RFC 7914, section 2; 32 MiB and about a tenth of a second."""
# A file with a huge cost would make each attempt take minutes, which is a lock-out by any program that can write it.
MOST_N = 2**20
MOST_MEMORY = 256 * 1024 * 1024
"""Bytes that scrypt may take for a file that another program wrote."""
SHORTEST, LONGEST = 8, 256
"""Characters at least, bytes of UTF-8 at most (two of them fit into one line to the guard)."""
# Bounded, so that someone who guesses wrong on purpose cannot keep the operator out for a day.
LONGEST_WAIT_S = 300.0
_FILE_LIMIT = 4096
_RESET = "The owner of the state directory resets it at a terminal: watchfloor secrets passphrase reset"


@dataclass(frozen=True, slots=True)
class Note:
    """What the guard remembers beside the latch: nothing in it helps to guess the passphrase."""

    sha256: str = ""
    """Of the file; empty: none is set."""
    next_sha256: str = ""
    """Of the file that is being written in its place."""
    path: str = ""
    """Where it was put: another environment after a restart changes nothing."""
    wrong: int = 0
    """Wrong attempts since the last right one."""
    reset_generation: int = -1
    """The latch's generation while it was reset, if it was killed then."""


def bootclock() -> float:
    """Return CLOCK_BOOTTIME, in seconds: no process can set it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Passphrase:
    """One instance's passphrase. ``state`` and ``why`` are what was last seen; everything else reads the disk and blocks."""

    def __init__(self, file: Path | None, folder: Path, clock: Callable[[], float] = bootclock) -> None:
        self._asked_file = file
        self._note_path = folder / "rearm.json"
        self._clock = clock
        self.not_before = 0.0
        """CLOCK_BOOTTIME: when the next attempt is looked at."""
        self.state, self.why = "not_set", ""
        """set, not_set or broken; why it is broken."""
        self.note = Note()

    def load(self) -> None:
        """Read what a former guard left. A restart never shortens a wait: the wait starts again."""
        self.look()
        self.not_before = self._clock() + wait_after(self.note.wrong)

    def look(self) -> str:
        """The state as the disk has it now; never raises."""
        try:
            raw = self._read()
            self.state, self.why = ("not_set", "") if raw is None else ("set", "")
            if raw is not None:
                _parameters(raw)
        except (Damaged, OSError) as error:
            self.state, self.why = "broken", str(error)[:300]
        return self.state

    @property
    def path(self) -> Path | None:
        """Where the file is, or would be put."""
        return Path(self.note.path) if self.note.path else self._asked_file

    def wait_s(self) -> float:
        """Seconds until the next attempt is looked at."""
        return max(0.0, round(self.not_before - self._clock(), 1))

    def check(self, given: str) -> None:
        """Denied unless it is the passphrase. Counted before it is compared; NotRecorded when that cannot be kept."""
        try:
            raw = self._read()
        except (Damaged, OSError) as error:
            raise Denied(f"The passphrase cannot be checked: {error}.", _RESET) from error
        if raw is None:
            raise Conflict("No passphrase is set.", "watchfloor secrets passphrase set")
        if (left := self.wait_s()) > 0:
            raise Denied(f"Too soon after a wrong passphrase: the next is not checked for another {left:g} s.", "Wait, then try again.")
        before = self.note
        # Before the comparison: killing the helper right after a wrong guess must not make the guess free.
        self._save(replace(before, wrong=before.wrong + 1))
        self.not_before = self._clock() + wait_after(self.note.wrong)
        try:
            right = hmac.compare_digest(*_both(raw, given))
        except (Damaged, ValueError) as error:
            raise Denied(f"The passphrase cannot be checked: {error}.", _RESET) from error
        if not right:
            left = self.wait_s()
            raise Denied(f"That is not the passphrase (wrong attempt {self.note.wrong}).", f"Try again in {left:g} s, or: {_RESET}")
        self._save(replace(self.note, wrong=0))
        self.not_before = 0.0

    def change(self, new: str, old: str) -> None:
        """Set the passphrase, or replace it. A replacement needs the old one."""
        checked(new)
        if self.look() == "broken":
            raise Denied(f"The passphrase file cannot be trusted: {self.why}.", _RESET)
        if self.state == "set":
            if not old:
                raise Denied("A passphrase is set already: changing it takes the old one.", _RESET)
            self.check(old)
        elif old:
            raise Conflict("No passphrase is set, so there is no old one.", "Leave the old one empty.")
        path = self.path
        if path is None:
            raise Conflict("This guard was started without a place for a passphrase.", "Start it with a supervisor.")
        body = made(new)
        digest = hashlib.sha256(body).hexdigest()
        # Between these writes either file is the right one, so that a crash locks nobody out.
        self._save(replace(self.note, next_sha256=digest, path=str(path)))
        _put(path, body)
        self._save(replace(self.note, sha256=digest, next_sha256="", wrong=0))
        self.not_before = 0.0
        self.look()

    def reset(self, generation: int) -> None:
        """Forgets it. The doors have seen to who asks; ``generation`` is the latch's when it is killed now, else -1."""
        path = self.path
        try:
            if path is not None:
                path.unlink(missing_ok=True)
            self._save(Note(reset_generation=generation))
        except OSError as error:
            raise NotRecorded(f"The passphrase could not be reset: {error.strerror}.", "Fix the file's folder; it stays set.") from error
        self.not_before = 0.0
        self.look()

    def _read(self) -> bytes | None:
        """The file's bytes, None when none is set. Damaged or OSError when there ought to be one and it cannot be trusted."""
        body = read_sealed(self._note_path)
        if body is None and self.note.sha256:
            raise Damaged("the note beside the latch is missing")
        self.note = note_from(body) if body is not None else Note(wrong=self.note.wrong)
        path = self.path
        raw = None if path is None else _contents(path)
        known = {digest for digest in (self.note.sha256, self.note.next_sha256) if digest}
        if raw is None:
            if self.note.sha256:
                raise Damaged("its file is missing")
            return None
        if body is not None and hashlib.sha256(raw).hexdigest() not in known:
            raise Damaged("its file was changed by something else than watchfloor secrets passphrase")
        return raw

    def _save(self, note: Note) -> None:
        try:
            write_whole(self._note_path, seal(asdict(note)))
        except OSError as error:
            raise NotRecorded(f"The attempt could not be recorded: {error.strerror}.", "Make room on the disk.") from error
        self.note = note


def wait_after(wrong: int) -> float:
    """Seconds in which nothing is looked at after so many wrong attempts in a row: 1, 2, 4 ... 300."""
    return 0.0 if wrong <= 0 else min(2.0 ** min(wrong - 1, 20), LONGEST_WAIT_S)


def checked(passphrase: str) -> bytes:
    """Its bytes, in one spelling (NFC). UsageProblem when it cannot be one; never with the passphrase in the words."""
    try:
        # Keyboards of different systems send the same letter in different spellings.
        text = unicodedata.normalize("NFC", passphrase)
        data = text.encode()
    except UnicodeEncodeError as error:
        raise UsageProblem("The passphrase is not valid text.", "Type it in UTF-8.") from error
    if any(unicodedata.category(letter) == "Cc" for letter in text):
        raise UsageProblem("The passphrase contains a control character.", "Leave it out.")
    if len(text) < SHORTEST or len(data) > LONGEST:
        raise UsageProblem(f"A passphrase has at least {SHORTEST} characters and at most {LONGEST} bytes.", "A few unrelated words do.")
    return data


def made(passphrase: str) -> bytes:
    """The file for it: parameters, a random salt and the hash."""
    salt = secrets.token_bytes(16)
    key = _scrypt(checked(passphrase), salt, N, R, P)
    return json.dumps({"scheme": "scrypt", "n": N, "r": R, "p": P, "salt": salt.hex(), "hash": key.hex()}).encode() + b"\n"


def _both(raw: bytes, given: str) -> tuple[bytes, bytes]:
    """(what the file holds, what the passphrase gives)."""
    n, r, p, salt, key = _parameters(raw)
    try:
        data = checked(given)
    except UsageProblem:
        data = b"\0" * 9  # it is not even one: as slow as a wrong one, and never right (a NUL cannot be set)
    return key, _scrypt(data, salt, n, r, p)


def _parameters(raw: bytes) -> tuple[int, int, int, bytes, bytes]:
    """What ``made`` wrote; Damaged on anything weaker or stranger."""
    try:
        body = json.loads(raw)
        n, r, p = (body[name] for name in ("n", "r", "p"))
        salt, key = bytes.fromhex(body["salt"]), bytes.fromhex(body["hash"])
        whole = body["scheme"] == "scrypt" and all(type(number) is int for number in (n, r, p))
        # Never weaker than ours: an attacker who can write the file must not choose how fast guesses are checked.
        strong = whole and N <= n <= MOST_N and n & (n - 1) == 0 and R <= r <= 32 and 1 <= p <= 4 and 128 * n * r < MOST_MEMORY
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Damaged("its file cannot be read") from error
    if not strong or len(salt) < 16 or len(key) != 32:
        raise Damaged("its file asks for weaker parameters than ours")
    return n, r, p, salt, key


def _scrypt(data: bytes, salt: bytes, n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(data, salt=salt, n=n, r=r, p=p, maxmem=MOST_MEMORY, dklen=32)


def _contents(path: Path) -> bytes | None:
    """Return the file's bytes, if no other account could have written or read it; None when there is no file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(fd, "rb") as file:
        seen = os.fstat(fd)
        if not stat.S_ISREG(seen.st_mode) or seen.st_uid not in (0, os.geteuid()) or seen.st_mode & 0o077:
            raise Damaged("its file is open to other accounts, or belongs to one")
        return file.read(_FILE_LIMIT)


def _put(path: Path, body: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        seen = path.parent.lstat()
        if not stat.S_ISDIR(seen.st_mode) or seen.st_uid not in (0, os.geteuid()) or seen.st_mode & 0o022:
            raise Conflict(f"The folder {path.parent} belongs to or can be written by others.", "chmod go-w it, or remove it.")
        write_whole(path, body)
    except OSError as error:
        raise NotRecorded(f"The passphrase could not be kept: {error.strerror}.", f"Make {path.parent} writable.") from error


def note_from(body: dict[str, object]) -> Note:
    kinds = {"sha256": str, "next_sha256": str, "path": str, "wrong": int, "reset_generation": int}
    if set(body) != set(kinds) or any(type(body[name]) is not kind for name, kind in kinds.items()):
        raise Damaged("the note beside the latch has the wrong shape")
    return Note(**body)  # type: ignore[arg-type]
