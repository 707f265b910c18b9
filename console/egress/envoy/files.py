"""The egress folder: what Envoy reads (ours, read-only to it), what it writes (its own), and nothing an agent can reach.

bootstrap.json, lds/, cds/, rds/<slot>/ are written by us, each by an atomic rename into a watched folder; sock/, admin/ and log/
belong to Envoy. Everything is below one folder that only root, Envoy and the relays pass.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from console.egress.children import Identity
from console.egress.envoy.config import CLUSTER, ROUTES, bootstrap, discovery
from console.egress.envoy.fragments import ACCESS_LOG, Json, Slot
from console.egress.envoy.gate import LISTENER

_LOG_MAX = 1_000_000


class Files:
    """Paths and writes below the egress folder."""

    def __init__(self, root: Path, envoy: Identity) -> None:
        self.root, self._envoy = root, envoy

    @property
    def access_log(self) -> Path:
        return self.root / ACCESS_LOG

    @property
    def envoy_log(self) -> Path:
        """What Envoy writes to standard error."""
        return self.root / "envoy.log"

    def prepare(self) -> None:
        """Makes the folder as for a first start: nothing of an earlier run counts."""
        envoy = self._envoy
        self.root.mkdir(parents=True, exist_ok=True)
        for name in ("lds", "cds", "rds", "sock", "admin", "check"):
            shutil.rmtree(self.root / name, ignore_errors=True)
        for name in ("lds", "cds", "rds", "check"):
            (self.root / name).mkdir()
        for name in ("sock", "admin", "log"):
            (self.root / name).mkdir(exist_ok=True)
        for path in (self.root, *(self.root / n for n in ("lds", "cds", "rds", "check"))):
            _own(path, os.geteuid(), envoy.gid, 0o750)
        # The relays are in Envoy's group: they pass this folder, and agents' accounts do not.
        _own(self.root / "sock", envoy.uid, envoy.gid, 0o750)
        # Envoy's own account alone (root passes anyway): the admin socket can end the proxy and show its configuration.
        _own(self.root / "admin", envoy.uid, envoy.gid, 0o700)
        _own(self.root / "log", envoy.uid, envoy.gid, 0o700)
        self._replace([(self.root / "bootstrap.json", bootstrap())])
        self.write("0", [], {}, [])

    def prepare_sockets(self) -> None:
        """Before each start of Envoy: no stale socket, and a log that cannot grow for ever."""
        for folder in ("sock", "admin"):
            for path in (self.root / folder).iterdir():
                path.unlink()
        if self.envoy_log.exists() and self.envoy_log.stat().st_size > _LOG_MAX:
            self.envoy_log.unlink()

    def write(self, version: str, clusters: list[Json] | None, routes: dict[Slot, Json], listeners: list[Json] | None) -> None:
        """Everything or nothing: all drafts are on disk before the first rename. Listeners last: they name the others. Raises OSError.

        What is None or missing stays as it is on disk.
        """
        for slot in routes:
            folder = self.root / "rds" / slot.name
            if not folder.exists():
                folder.mkdir()
                _own(folder, os.geteuid(), self._envoy.gid, 0o750)
        files = [(self.root / "rds" / s.name / "rds.json", discovery(version, ROUTES, [r])) for s, r in routes.items()]
        if clusters is not None:
            files.insert(0, (self.root / "cds" / "cds.json", discovery(version, CLUSTER, clusters)))
        if listeners is not None:
            files.append((self.root / "lds" / "lds.json", discovery(version, LISTENER, listeners)))
        self._replace(files)

    def _replace(self, files: list[tuple[Path, Json]]) -> None:
        drafts: list[tuple[Path, Path]] = []
        try:
            for path, value in files:
                draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")  # a name Envoy does not read
                drafts.append((draft, path))
                draft.write_text(json.dumps(value, separators=(",", ":")))
                _own(draft, os.geteuid(), self._envoy.gid, 0o640)
            for draft, path in drafts:
                draft.rename(path)  # atomic (rename(2)), and what a watched folder reacts to
        finally:
            for draft, _ in drafts:
                draft.unlink(missing_ok=True)

    def remove_routes(self, slot: Slot) -> None:
        shutil.rmtree(self.root / "rds" / slot.name, ignore_errors=True)

    def envoy_words(self, since: int = 0) -> str:
        """The last line Envoy wrote to its log after ``since`` bytes, or empty."""
        try:
            with self.envoy_log.open("rb") as file:
                file.seek(max(since, self.envoy_log.stat().st_size - 20_000))
                lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
        except OSError:
            return ""
        return lines[-1][:1000] if lines else ""

    def envoy_log_size(self) -> int:
        try:
            return self.envoy_log.stat().st_size
        except OSError:
            return 0

    @contextmanager
    def scratch(self, text: str) -> Iterator[Path]:
        """A folder like the real one, for one validation."""
        folder = self.root / "check" / secrets.token_hex(4)
        folder.mkdir(parents=True)
        try:
            (folder / "log").mkdir()
            (folder / "whole.json").write_text(text)
            for path in (folder, folder / "log", folder / "whole.json"):
                _own(path, self._envoy.uid, self._envoy.gid, 0o700)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _own(path: Path, uid: int, gid: int, mode: int) -> None:
    if os.geteuid() == 0:
        os.chown(path, uid, gid)
    path.chmod(mode)
