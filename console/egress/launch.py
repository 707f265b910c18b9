"""Runs a program of this room with less than its starter has: ``python -I -S launch.py SPEC`` (JSON), standard library only.

In this order: read the program while its files can still be read, enter a network namespace, change folder, give up every
privilege for good, then run. Either ``exec`` replaces the process (Envoy), or ``program`` names a Python file whose
``main(*args)`` is called.
"""

import contextlib
import ctypes
import errno
import json
import os
import runpy
import signal
import sys

NEWNS, NEWNET = 0x00020000, 0x40000000
MS_BIND, MS_REC, MS_SLAVE = 0x1000, 0x4000, 0x80000
PASSABLE = "/mnt"
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
libc = ctypes.CDLL(None, use_errno=True)


def must(result: int, what: str) -> None:
    """Turns a -1 of the C library into an OSError."""
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def drop(uid: int, gid: int) -> None:
    """Gives up user, groups and with them every capability (capabilities(7): a change to non-zero ids clears all sets)."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    must(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


def cut_off() -> None:
    """What is mounted here from now on stays here; unmounts elsewhere still reach it."""
    if libc.mount(None, b"/", None, MS_REC | MS_SLAVE, None) == 0:
        return
    if ctypes.get_errno() != errno.EINVAL:
        must(-1, "mount namespace")
    # In a chroot "/" is no mount point (mount(2), EINVAL): out to the namespace's own root, as a privileged process can, and back in.
    here = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    os.chroot("/proc")
    os.fchdir(here)
    while not os.path.samefile(".", ".."):  # noqa: PTH121 - pathlib would be a third of this program's start
        os.chdir("..")
    os.chroot(".")
    must(libc.mount(None, b"/", None, MS_REC | MS_SLAVE, None), "mount namespace")
    os.fchdir(here)
    os.chroot(".")
    os.close(here)


def enter(folder: str, bind: bool) -> None:
    """Make ``folder`` the working directory. ``bind``: also mount it at an open path, in a mount namespace of its own."""
    # With bind its parents are closed to the program, but Envoy resolves every path from the root.
    if bind:
        must(libc.unshare(NEWNS), "unshare")
        cut_off()
        must(libc.mount(folder.encode(), PASSABLE.encode(), None, MS_BIND, None), "bind mount")
        folder = PASSABLE
    os.chdir(folder)


def main(spec: dict) -> None:  # type: ignore[type-arg]
    """Carries SPEC out: {netns, cwd, bind, uid, gid, umask, exec?, program?, args, parent}."""
    parent, args = spec["parent"], spec["args"]
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("0")  # not as the supervisor, which is taken last
    namespace = runpy.run_path(spec["program"]) if spec.get("program") else {}
    # Opened with the starter's rights: after the drop the folders above it may be closed to this account.
    binary = os.open(spec["exec"], os.O_RDONLY | os.O_CLOEXEC) if spec.get("exec") else -1
    if spec.get("netns"):
        fd = os.open(spec["netns"], os.O_RDONLY | os.O_CLOEXEC)
        must(libc.setns(fd, NEWNET), "setns")
        os.close(fd)
    enter(spec["cwd"], spec["bind"])
    os.umask(spec.get("umask", 0o077))
    drop(spec["uid"], spec["gid"])
    if binary < 0:
        namespace["main"](*args)
        return
    # Dies with the thread that started it. "cleared ... when credentials change" (prctl(2)), so it is set after them.
    must(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "death signal")
    if os.getppid() != parent:
        sys.exit("the supervisor ended meanwhile")
    os.execve(binary, [spec["exec"], *args], {})


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
