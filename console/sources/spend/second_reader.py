"""A second process that reads transcripts beside the first: Python runs one thread at a time, and a long history takes two cores' work.

Whatever becomes of it, nothing is lost: what it did not answer is given back and read here.
"""

from __future__ import annotations

import logging
import os
import pickle
import select
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType

import msgspec

from console.sources.spend.transcript_files import Place, Transcript, Transcripts
from console.sources.spend.transcript_process import LENGTH, LONGEST, Asked, Reply

log = logging.getLogger(__name__)
WORTH = 48 << 20
"""Bytes to read from which it is started: that takes as long as reading some 20 MB."""
CHUNK = 4 << 20
"""Bytes of transcripts that it is given at once, or one larger one."""
CHUNKS = 6
"""What it has at most: enough to be busy while this process writes what was read, little enough to be waited for at the end."""
_ASKED_MAX = 16 << 10
"""Bytes of what is asked at once: all of it fits into the pipe, so that asking never waits."""
_PIPE = 1 << 20
"""Bytes of answers that wait to be read before it has to wait."""
_ROOT = Path(__file__).resolve().parents[3]
_LIBRARIES = Path(msgspec.__file__).resolve().parents[1]
PROGRAM = """import pickle, sys; sys.path += sys.argv[2:]
from console.sources.spend.transcript_process import main
main(pickle.loads(bytes.fromhex(sys.argv[1])))"""
"""It is given the kinds by the names of their functions, so that it loads how each writes and nothing else of it."""
_ASK = msgspec.msgpack.Encoder()
_REPLY = msgspec.msgpack.Decoder(Reply)
Due = tuple[Transcript, Place | None]
"""What is to be read, and from where."""


def is_worth_it(due: Iterable[Due]) -> bool:
    """Whether a second process shortens this."""
    left = sum(transcript.size - (0 if before is None else min(before.offset, transcript.size)) for transcript, before in due)
    return left >= WORTH and len(os.sched_getaffinity(0)) > 1


class SecondReader:
    """Used by one thread, within ``with``."""

    def __init__(self, kinds: Iterable[Transcripts], *, wanted: bool) -> None:
        """Not ``wanted``: it takes nothing, like one that is lost."""
        self._kinds = tuple(kinds)
        self._process: subprocess.Popen[bytes] | None = None
        self._is_lost = not wanted
        self._told = bytearray()
        self._chunks: deque[dict[int, Due]] = deque()
        """What it has, oldest chunk first, by the number it was given."""
        self._number = 0

    def __enter__(self) -> SecondReader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._process is None:
            return
        self._process.kill()  # nothing of it is waited for any more, and it keeps nothing
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    @property
    def owes(self) -> bool:
        """Whether it has something that it has not answered."""
        return bool(self._chunks)

    def feed(self, due: deque[Due]) -> None:
        """Takes from the end of ``due`` what keeps it busy."""
        try:
            while due and not self._is_lost and len(self._chunks) < CHUNKS:
                asked = self._give(due)  # counts as given, whether it arrives or not
                os.write(self._asks(), asked)
        except OSError as error:
            self._lose(str(error))

    def _asks(self) -> int:
        """Starts it, if it does not run. Raises OSError."""
        if self._process is None:
            # Nothing of our environment but the zone, in which times that name none are meant.
            zone = {"TZ": os.environ["TZ"]} if "TZ" in os.environ else {}
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", PROGRAM, pickle.dumps(self._kinds).hex(), str(_ROOT), str(_LIBRARIES)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=zone, cwd="/", bufsize=0, pipesize=_PIPE,
            )  # fmt: skip
        assert self._process.stdin is not None
        return self._process.stdin.fileno()

    def _tells(self) -> int:
        assert self._process is not None and self._process.stdout is not None
        return self._process.stdout.fileno()

    def _give(self, due: deque[Due]) -> bytes:
        chunk: dict[int, Due] = {}
        asked = b""
        size = 0
        while due and size < CHUNK:
            transcript, before = due[-1]
            one = _ASK.encode(Asked(self._number, transcript.source, os.fsencode(transcript.path), transcript.ours, before))
            if chunk and len(asked) + len(one) > _ASKED_MAX:
                break
            chunk[self._number] = due.pop()
            asked += LENGTH.pack(len(one)) + one
            self._number += 1
            size += transcript.size
        self._chunks.append(chunk)
        return asked

    def replies(self, *, wait: bool) -> Iterator[tuple[Transcript, Reply]]:
        """What it has answered by now. ``wait``: at least one answer, or that it is lost."""
        while self.owes and not self._is_lost:
            try:
                if not wait and not self._has_told():
                    return
                for reply in self._whole():
                    wait = False
                    yield self._transcript_of(reply), reply
            except (OSError, EOFError, ValueError, LookupError) as error:
                self._lose(str(error))

    def _has_told(self) -> bool:
        ready = select.poll()
        ready.register(self._tells(), select.POLLIN)
        return bool(ready.poll(0))

    def _whole(self) -> Iterator[Reply]:
        """Answers that are whole after another read. Raises OSError, EOFError, ValueError when it is no answer."""
        data = os.read(self._tells(), 1 << 20)
        if not data:
            raise EOFError("it ended")
        self._told += data
        while len(self._told) >= LENGTH.size:
            (size,) = LENGTH.unpack_from(self._told)
            if size > LONGEST:
                raise ValueError(f"an answer of {size:,} bytes")
            if len(self._told) < LENGTH.size + size:
                return
            whole = bytes(self._told[LENGTH.size : LENGTH.size + size])
            del self._told[: LENGTH.size + size]
            yield _REPLY.decode(whole)

    def _transcript_of(self, reply: Reply) -> Transcript:
        """Raises LookupError when it was not asked."""
        chunk = next((one for one in self._chunks if reply.number in one), None)
        if chunk is None:
            raise LookupError(f"an answer to number {reply.number}, which it was not asked")
        transcript, _ = chunk.pop(reply.number) if reply.is_last else chunk[reply.number]
        if not chunk:
            self._chunks.remove(chunk)
        return transcript

    def given_back(self) -> list[Due]:
        """What it was given and will not answer."""
        if not self._is_lost:
            return []
        back = [due for chunk in self._chunks for due in chunk.values()]
        self._chunks.clear()
        return back

    def _lose(self, why: str) -> None:
        self._is_lost = True
        log.warning("the second process that reads transcripts is lost (%s): what it had is read here", why)
