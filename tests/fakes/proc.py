"""A stand-in for /proc in a temporary folder."""

from __future__ import annotations

from pathlib import Path

NAMESPACE = "pid:[4026531836]"


class FakeProc:
    """Writes the files of /proc that sources read."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "self" / "ns").mkdir(parents=True)
        (root / "self" / "stat").write_text("")
        (root / "self" / "ns" / "pid").symlink_to(NAMESPACE)

    def add(
        self,
        pid: int,
        *,
        start: int = 1000,
        exe: str = "/usr/bin/claude",
        argv: tuple[str, ...] = ("claude",),
        uid: int = 0,
        euid: int | None = None,
        name: str = "claude",
        state: str = "S",
        cgroup: str = "0::/",
        cwd: str = "/home/dev/proj",
    ) -> Path:
        """One process; returns its folder."""
        folder = self.root / str(pid)
        (folder / "fd").mkdir(parents=True)
        fields = [state, *["0"] * 18, str(start), "0"]
        (folder / "stat").write_bytes(b"%d (%s) %s\n" % (pid, name.encode(), " ".join(fields).encode()))
        (folder / "status").write_text(f"Name:\tx\nUid:\t{uid}\t{uid if euid is None else euid}\t{uid}\t{uid}\n")
        (folder / "cmdline").write_bytes(b"\0".join(a.encode("utf-8", "surrogateescape") for a in argv) + b"\0")
        (folder / "cgroup").write_text(cgroup + "\n")
        (folder / "exe").symlink_to(exe)
        (folder / "cwd").symlink_to(cwd)
        return folder

    def open_file(self, pid: int, fd: int, target: Path) -> None:
        """Lets the process hold ``target`` open."""
        (self.root / str(pid) / "fd" / str(fd)).symlink_to(target)
