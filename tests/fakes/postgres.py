"""A PostgreSQL server of the test's own: a cluster in its temporary folder, unix socket only, under an ordinary uid, ended by its pid."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

ORDINARY = 65534
"""As root it would refuse to start; agents have this uid, so they may connect."""


class Postgres:
    """``with Postgres() as dsn:`` a connection string for whoever has the server's uid."""

    def __enter__(self) -> str:
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres")) if Path("/usr/lib/postgresql").exists() else []
        assert found, "PostgreSQL is not installed: packaging/test installs it (Debian's package postgresql)"
        self._uid = ORDINARY if os.geteuid() == 0 else os.geteuid()
        self._folder = Path(tempfile.mkdtemp(prefix="pg"))
        if os.geteuid() == 0:
            os.chown(self._folder, self._uid, self._uid)
        self._folder.chmod(0o755)
        data, binaries = self._folder / "data", found[-1].parent
        self._run(str(binaries / "initdb"), "-D", str(data), "-U", "graph", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8")
        options = (
            "-c",
            "listen_addresses=",
            "-c",
            f"unix_socket_directories={self._folder}",
            "-c",
            "fsync=off",
            "-c",
            "max_connections=20",
        )
        self._server = subprocess.Popen([binaries / "postgres", "-D", data, *options], **self._as())  # type: ignore[call-overload]
        dsn = f"host={self._folder} user=graph dbname=postgres"
        try:
            self._answers(dsn)
        except BaseException:
            self.__exit__()
            raise
        return dsn

    def __exit__(self, *_: object) -> None:
        self._server.send_signal(signal.SIGINT)  # a fast shutdown (postgres(1))
        self._server.wait(60)
        shutil.rmtree(self._folder)

    def _as(self) -> dict[str, object]:
        drop = {"user": self._uid, "group": self._uid, "extra_groups": []} if os.geteuid() == 0 else {}
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TMPDIR": str(self._folder)}
        return {"env": environment, "cwd": self._folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **drop}

    def _run(self, *argv: str) -> None:
        done = subprocess.run(argv, **{**self._as(), "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT})  # type: ignore[call-overload]
        assert done.returncode == 0, done.stdout.decode(errors="replace")

    def _answers(self, dsn: str) -> None:
        import psycopg

        from tests.fakes.instance import until

        def answers() -> bool:
            assert self._server.poll() is None, "PostgreSQL ended while it started"
            try:
                with psycopg.connect(dsn):
                    return True
            except psycopg.OperationalError:
                return False

        until(answers, words="PostgreSQL answers")
