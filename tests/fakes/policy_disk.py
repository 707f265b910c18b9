"""A small disk for rules on paths, in memory: programs, a workspace, links out of it, and what is no plain file."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from itertools import count

from console.policy.files.paths import TEXT_MAX, Facts
from console.policy.files.walk import Listing

WORKSPACE = "/workspace"
_PROGRAMS = [
    "cat",
    "grep",
    "egrep",
    "sed",
    "find",
    "head",
    "tail",
    "wc",
    "sort",
    "uniq",
    "diff",
    "cut",
    "tr",
    "echo",
    "printf",
    "ls",
    "tree",
    "mkdir",
    "cp",
    "mv",
    "touch",
    "rm",
    "ln",
    "chmod",
    "tee",
    "tar",
    "git",
    "pip",
    "curl",
    "wget",
    "nc",
    "bash",
    "sh",
    "python3",
    "env",
    "timeout",
    "nice",
    "nohup",
    "stdbuf",
    "xargs",
    "sudo",
    "su",
    "doas",
    "unshare",
    "nsenter",
    "chroot",
    "script",
    "watch",
    "parallel",
    "ssh",
    "busybox",
    "flock",
    "strace",
    "perl",
    "node",
    "make",
    "npm",
    "docker",
    "vim",
    "less",
    "man",
    "rg",
    "awk-real",
    "rsync",
    "dd",
    "gh",
    "terraform",
    "setsid",
    "time",
    "jq",
    "test",
    "true",
    "gcloud",
    "kubectl",
    "base64",
    "stat",
    "id",
    "date",
    "readlink",
    "realpath",
    "which",
    "file",
    "seq",
    "sleep",
    "cmp",
    "comm",
    "mount",
    "umount",
    "ncat",
]


class PolicyDisk:
    """Files by path; links are followed as the kernel does, within the few that are here."""

    def __init__(self) -> None:
        self.links = {
            "/bin": "/usr/bin",
            "/usr/bin/awk": "/usr/bin/awk-real",
            "/usr/bin/python": "/usr/bin/python3",
            "/workspace/etc": "/etc",
            "/workspace/shadow": "/etc/shadow",
            "/workspace/mycurl": "/usr/bin/curl",
            "/workspace/grep": "/usr/bin/curl",
            "/workspace/inside": "/workspace/data",
            "/workspace/links/out": "/home/u",
            "/workspace/links/in": "/workspace/data",
            "/workspace/links/gone": "/nowhere/x",
            "/workspace/near/in": "/workspace/data",
            "/workspace/loop": "/workspace/loop",
            "/proc/self/root": "/",
            "/workspace/gone": "/nowhere/at/all",
            "/workspace/out": "/etc/cron.d",
        }
        self.folders = {
            "/",
            "/usr",
            "/usr/bin",
            "/etc",
            "/etc/cron.d",
            "/proc",
            "/proc/self",
            "/tmp",
            "/home",
            "/home/u",
            "/workspace-evil",
        }  # noqa: S108
        self.folders |= {
            "/workspace",
            "/workspace/data",
            "/workspace/logs",
            "/workspace/.git",
            "/workspace/links",
            "/workspace/near",
            "/workspace/secrets",
            "/dev",
            "/root",
        }
        self.files = {f"/usr/bin/{name}" for name in _PROGRAMS} | {"/lib64/ld-linux-x86-64.so.2"}
        self.files |= {
            "/etc/passwd",
            "/etc/shadow",
            "/etc/hosts",
            "/workspace-evil/x",
            "/home/u/.bashrc",
            "/root/.ssh",
            "/proc/self/environ",
        }
        self.files |= {f"/workspace/{name}" for name in ("a.txt", "b.txt", "data/x.csv", "logs/app.log", ".git/config", "run.sh", "curl")}
        self.files |= {"/workspace/secrets/key", "/workspace/hard", "/workspace/hardcurl"}
        self.others = {"/workspace/pipe": "fifo", "/workspace/sock": "socket", "/workspace/disk": "device", "/workspace/odd": "unknown"}
        self.names = {"/workspace/hard": 2, "/workspace/hardcurl": 2, "/usr/bin/curl": 2}
        self.texts: dict[str, str] = {}
        self.inodes = {"/workspace/hardcurl": (1, 7), "/usr/bin/curl": (1, 7)}

    def look(self, path: str) -> Facts:
        """As ``Disk.look``."""
        real = self._real(path)
        if real is None:
            return Facts("", "loop")
        if real in self.folders:
            return Facts(real, "folder", 2)
        if real in self.files:
            return Facts(real, "file", self.names.get(real, 1), self.inodes.get(real, (1, hash(real))))
        if real in self.others:
            return Facts(real, self.others[real])
        if path in self.links or posixpath.dirname(real) in self.files:
            return Facts("", "unknown")
        return Facts(real, "missing")

    def stamp(self, folder: str) -> tuple[int, ...] | None:
        """As ``Disk.stamp``: it does not say."""
        return None

    def listing(self, folder: str) -> Listing:
        """As ``Disk.listing``."""
        inside = folder.rstrip("/") + "/"

        def here(names: Iterable[str]) -> tuple[str, ...]:
            return tuple(sorted(one[len(inside) :] for one in names if one.startswith(inside) and "/" not in one[len(inside) :] != ""))

        return Listing(here(self.folders), here(self.links), here((*self.files, *self.others)))

    def text(self, path: str, most: int = TEXT_MAX) -> str | None:
        """As ``Disk.text``."""
        return self.texts.get(path)

    def _real(self, path: str) -> str | None:
        done = "/"
        pending = [piece for piece in reversed(path.split("/")) if piece]
        for _ in range(200):
            if not pending:
                return done
            piece = pending.pop()
            if piece == "..":
                done = posixpath.dirname(done)
            elif piece != ".":
                done = posixpath.join(done, piece)
                if (target := self.links.get(done)) is not None:
                    pending += [one for one in reversed(target.split("/")) if one]
                    done = "/"
        return None


class StampedDisk(PolicyDisk):
    """As a real disk, it says that a folder did not change: nothing may be changed here once it was made."""

    _made = count(1)

    def __init__(self) -> None:
        super().__init__()
        self._number = next(self._made)
        """No other disk has it: what is remembered of names that are missing holds for this one alone."""

    def stamp(self, folder: str) -> tuple[int, ...] | None:
        """As ``Disk.stamp``."""
        return (self._number,) if self.look(folder).kind == "folder" else ()
