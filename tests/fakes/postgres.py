"""A PostgreSQL server of the test's own: a cluster in its temporary folder, unix socket only, under an ordinary uid, ended by its pid."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import psycopg

from tests.fakes.instance import until

ORDINARY = 65534
"""As root it would refuse to start; agents have this uid, so they may connect."""


class Postgres:
    """``with Postgres() as server: server.dsn()`` gives a connection string for whoever has the server's uid."""

    def __enter__(self) -> Postgres:
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres")) if Path("/usr/lib/postgresql").exists() else []
        assert found, "PostgreSQL is not installed: packaging/test installs it (Debian's package postgresql)"
        root, binaries = os.geteuid() == 0, found[-1].parent
        self._folder = Path(tempfile.mkdtemp(prefix="pg"))
        if root:
            os.chown(self._folder, ORDINARY, ORDINARY)
        self._folder.chmod(0o755)
        # One process from the first moment to the last: it makes the cluster, then becomes the server.
        make = f"{binaries}/initdb -D data -U graph -A trust --no-sync --no-locale -E UTF8 >log 2>&1"
        only = f"-c listen_addresses= -c unix_socket_directories={self._folder} -c fsync=off -c max_connections=20"
        serve = f"exec {binaries}/postgres -D data {only}"
        self._server = subprocess.Popen(
            ["/bin/sh", "-c", f"{make} && {serve} >>log 2>&1"],
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TMPDIR": str(self._folder)},
            cwd=self._folder,
            user=ORDINARY if root else None,
            group=ORDINARY if root else None,
            extra_groups=[] if root else None,
        )
        return self

    def dsn(self) -> str:
        """Where it is, once it answers."""
        dsn = f"host={self._folder} user=graph dbname=postgres"
        until(lambda: self._answers(dsn), words="PostgreSQL answers")
        return dsn

    def __exit__(self, *_: object) -> None:
        self._server.send_signal(signal.SIGINT)  # a fast shutdown (postgres(1))
        self._server.wait(60)
        shutil.rmtree(self._folder)

    def _answers(self, dsn: str) -> bool:
        assert self._server.poll() is None, (self._folder / "log").read_text(errors="replace")[-4000:]
        try:
            with psycopg.connect(dsn):
                return True
        except psycopg.OperationalError:
            return False
