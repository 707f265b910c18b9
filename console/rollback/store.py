"""Snapshots before destructive actions, and putting them back: recorded durably first, refused when the file changed since."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from console.domain.errors import Conflict, ConsoleError, Denied, NotFound, UsageProblem
from console.domain.process.failpoints import failpoint
from console.domain.rollback import RECORDS_FILE, RollbackKind, RollbackRecord, RollbackState
from console.rollback.images import ABSENT, Image, Objects, look, stamp_of
from console.rollback.journal import Entry, Journal
from console.rollback.preview import DIFF_BYTES, RollbackDetail, compare
from console.rollback.putting_back import folder_of, put, remove, sweep
from console.rollback.safe_open import MAX_BYTES, check_plain, open_beneath, relative_parts, workspace
from console.rollback.words import conflict, dry_run, state

# An agent that rewrites large files all day must not fill the disk that the latch needs.
MAX_TOTAL = 4 * 1024**3


class RollbackStore:
    """Thread-safe. Every path and id an agent gives is hostile; files are reached beneath the session's workspace only."""

    def __init__(
        self,
        dir: Path,
        workspaces_dir: Path,
        *,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """Opens or makes the store (0700). Raises NotRecorded when it cannot be used, Conflict when a newer version wrote it."""
        self._workspaces = workspaces_dir
        self._max_bytes = max_bytes
        self._restoring = threading.Lock()
        self._objects = Objects(dir / "objects", MAX_TOTAL)
        try:
            dir.chmod(0o700)
            self._journal = Journal(dir / RECORDS_FILE)
        except BaseException:
            self._objects.close()
            raise
        self._seen = Seen(max_bytes)
        for entry in self._journal.unfinished():
            _sweep(workspaces_dir, entry)

    def close(self) -> None:
        """Once."""
        self._journal.close()
        self._objects.close()

    def snapshot(self, agent_id: str, context_id: str, kind: RollbackKind, rel_path: str) -> RollbackRecord:
        """Keeps the file as it is now; content and record are on disk when this returns, so the action may be allowed.

        A file that is not there is recorded as absent. Raises Denied (path or file refused, in words), UsageProblem (context id),
        NotFound (no workspace), NotRecorded (disk).
        """
        # The path is judged before anything is opened.
        parts = relative_parts(rel_path, self._roots(context_id))
        with workspace(self._workspaces, context_id) as root:
            before = self._objects.snapshot(root, parts, self._max_bytes)
        # Content before record: a record whose content was lost in a crash would promise a restore that cannot be done.
        failpoint("snapshot.kept")
        entry = self._journal.add(agent_id, context_id, kind, "/".join(parts), before, time.time())
        return entry.as_record(RollbackState.UNKNOWN)

    def note_after(self, record_id: str) -> RollbackRecord:
        """Reads what the action left. While the file is as it was before, the action has not been seen and stays unknown.

        May be called again until something was seen; then it changes nothing. Raises NotFound, NotRecorded.
        """
        entry = self._journal.get(record_id)
        if not entry.after_known and self._journal.newer(entry) is None:
            now, _ = self._now(entry)
            if now is not None and now.sha256 != entry.before_sha256:
                self._journal.note_after(record_id, now.sha256)
        return self.get(record_id)

    def records(self, limit: int = 500, agent_id: str | None = None) -> list[RollbackRecord]:
        """The newest records, newest first, each with its state as the disk is now (unknown where that was not looked at)."""
        entries = self._journal.newest(max(1, min(limit, 5000)), agent_id)
        # A list of many large files would otherwise be hashed whole each time that a page is shown.
        budget = [self._max_bytes]
        return [entry.as_record(self._state(entry, budget)) for entry in entries]

    def get(self, record_id: str) -> RollbackRecord:
        """Raises NotFound."""
        entry = self._journal.get(record_id)
        return entry.as_record(self._state(entry, None))

    def undoing(self, record_id: str) -> RollbackRecord | None:
        """The newest record of what a restore of this one overwrote, or None. Raises NotFound."""
        own = self._journal.own_of(self._journal.get(record_id))
        return None if own is None else own.as_record(self._state(own, None))

    def detail(self, record_id: str) -> RollbackDetail:
        """Diff, conflict and dry run of one record; reads the file, writes nothing. Raises NotFound."""
        entry = self._journal.get(record_id)
        newer = self._journal.newer(entry)
        content = bytearray()
        now, refused = self._now(entry, lambda piece: content.extend(piece[: DIFF_BYTES - len(content)]))
        before, lost = _before(self._objects, entry)
        why = refused or conflict(entry, now, newer) or lost
        longest = max(now.size if now else 0, entry.before_size)
        diff = compare(bytes(content), before, cut=longest > DIFF_BYTES)
        return RollbackDetail(
            record=entry.as_record(state(entry, now, newer)),
            conflict=why,
            before_sha256=entry.before_sha256,
            now_sha256=now.sha256 if now else None,
            binary=diff.binary,
            truncated=diff.truncated,
            diff=diff.rows,
            dry_run=dry_run(entry, now, why),
        )

    def restore(self, record_id: str, by: str, expect_now_sha256: str | None) -> RollbackRecord:
        """Puts the file back as it was before the recorded action; ``expect_now_sha256`` is what the operator saw on disk.

        Content, permission bits and owner (never set-id bits). What it overwrites is recorded first and can be put back in turn.
        A second time changes nothing. Raises Conflict when the file is not what was seen, or not what the action left; NotFound;
        NotRecorded; ConsoleError when the disk refuses. Then the file is as it was.
        """
        with self._restoring, workspace(self._workspaces, self._journal.get(record_id).context_id) as root:
            entry = self._journal.get(record_id)
            # 1. What is there now, and is it what the operator and the record expect?
            now, refused = self._now(entry)
            if now is None:
                raise Conflict(refused, "Remove what is in its place, then look at it again.")
            if now.sha256 == entry.before_sha256:
                return self._already(entry, by)
            if now.sha256 != expect_now_sha256:
                raise Conflict("The file is not what you looked at any more.", "Look at the record again, then decide.")
            why = conflict(entry, now, self._journal.newer(entry))
            if why:
                raise Conflict(why, "Nothing was written.")
            with folder_of(root, entry.parts) as folder:
                # 2. What will be overwritten is kept first, as a record of its own.
                own = self._keep(root, entry, expect_now_sha256)
                # 3. The change itself, atomically.
                self._change(folder, entry, now)
            # 4. Both records learn what happened, in one transaction. A crash before this leaves the first one restorable (again).
            self._journal.note_restored(record_id, by, time.time(), (own.record_id, entry.before_sha256))
        return self.get(record_id)

    def _already(self, entry: Entry, by: str) -> RollbackRecord:
        """Nothing to write. A restore that was cut off after its change, before its note, is noted now."""
        own = self._journal.own_of(entry)
        _sweep(self._workspaces, entry)
        if entry.restored_at is None and (entry.after_known or own is not None):
            unfinished = own is not None and not own.after_known
            self._journal.note_restored(
                entry.record_id, by, time.time(), (own.record_id, entry.before_sha256) if own is not None and unfinished else None
            )
        return self.get(entry.record_id)

    def _keep(self, root: int, entry: Entry, expected: str | None) -> Entry:
        kind = RollbackKind.FILE_DELETE if entry.before_sha256 is None else RollbackKind.FILE_WRITE
        kept = self._objects.snapshot(root, entry.parts, self._max_bytes)
        # Read again while it is kept: the file may have changed between the operator's look and this moment.
        if kept.sha256 != expected:
            raise Conflict("The file is not what you looked at any more.", "Look at the record again, then decide.")
        return self._journal.add(entry.agent_id, entry.context_id, kind, entry.path, kept, time.time(), undoes=entry.record_id)

    def _change(self, folder: int, entry: Entry, now: Image) -> None:
        name, draft = entry.parts[-1], _draft(entry)
        sha256 = entry.before_sha256
        if sha256 is None:
            remove(folder, name, draft, now)
            return
        before = Image(sha256, entry.before_size, entry.before_mode, entry.before_uid, entry.before_gid)
        put(folder, name, draft, before, now, lambda fd: self._objects.copy_to(sha256, fd))

    def _roots(self, context_id: str) -> tuple[str, ...]:
        """Absolute names that an agent may have for its workspace."""
        bases = {str(self._workspaces), str(self._workspaces.resolve())}
        return tuple(f"{base}/{context_id}" for base in sorted(bases))

    def _now(self, entry: Entry, keep: Callable[[bytes], object] | None = None) -> tuple[Image | None, str]:
        """(the file now, '') or (None, why it cannot be looked at)."""
        try:
            with workspace(self._workspaces, entry.context_id) as root:
                image = look(root, entry.parts, self._max_bytes, keep)
        except (Denied, NotFound, UsageProblem) as error:  # one row that somebody changed hides no other
            return None, error.what
        self._seen.remember(entry, image)
        return image, ""

    def _state(self, entry: Entry, budget: list[int] | None) -> RollbackState:
        newer = self._journal.newer(entry)
        try:
            with workspace(self._workspaces, entry.context_id) as root:
                now = self._seen.look(root, entry, budget)
        except (Denied, NotFound, UsageProblem):
            return state(entry, None, newer)
        if now is None:  # not looked at: said so, not guessed
            return RollbackState.RESTORED if entry.restored_at is not None else RollbackState.UNKNOWN
        return state(entry, now, newer)


def _before(objects: Objects, entry: Entry) -> tuple[bytes, str]:
    """(the first bytes of the snapshot, '') or (b'', why they are lost)."""
    if entry.before_sha256 is None:
        return b"", ""
    try:
        return objects.read(entry.before_sha256, DIFF_BYTES), ""
    except ConsoleError as error:
        return b"", error.what


def _draft(entry: Entry) -> str:
    """The name under which a content waits beside the file it replaces; the same at every try, so that none is left."""
    return f".watchfloor-{entry.record_id}"


def _sweep(workspaces: Path, entry: Entry) -> None:
    try:
        with workspace(workspaces, entry.context_id) as root:
            sweep(root, entry.parts, _draft(entry))
    except (Denied, NotFound, UsageProblem):
        return


# --- What files were found to hold, remembered as long as their stamp stays, so that a list does not hash them all each time.


_MOST = 20_000
# A file changed twice within one tick of the kernel's clock keeps its ctime: a stamp counts only once it is older than this.
_SETTLED_S = 0.1


class Seen:
    """Images by session and path. An agent can set mtime but not ctime (utimensat(2)), so a stamp cannot be forged."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._images: dict[tuple[str, str], Image] = {}

    def remember(self, entry: Entry, image: Image) -> None:
        """After a look at the whole file."""
        with self._lock:
            if len(self._images) >= _MOST:
                self._images.clear()
            if image.sha256 is not None and time.time() - image.stamp[4] / 1e9 > _SETTLED_S:
                self._images[entry.context_id, entry.path] = image

    def look(self, root: int, entry: Entry, budget: list[int] | None) -> Image | None:
        """The file now; None when reading it would exceed what is left of ``budget`` (bytes, counted down). Raises Denied."""
        size = 0
        try:
            handle = open_beneath(root, entry.parts, os.O_PATH)
        except FileNotFoundError:
            return ABSENT
        except OSError as error:
            raise Denied(f"The file cannot be opened: {error.strerror}.") from error
        try:
            found = os.fstat(handle)
            check_plain(found, os.fstat(root).st_dev, repr(entry.path[:120]), self._max_bytes)
            size = found.st_size
            with self._lock:
                known = self._images.get((entry.context_id, entry.path))
            if known is not None and known.stamp == stamp_of(found):
                return known
        finally:
            os.close(handle)
        if budget is not None:
            if size > budget[0]:
                return None
            budget[0] -= size
        image = look(root, entry.parts, self._max_bytes)
        self.remember(entry, image)
        return image
