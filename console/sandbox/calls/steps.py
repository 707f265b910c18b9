"""Executes the steps of one judged call inside its sandbox: ``python3 -I -S steps.py PLAN REPORT OUT ERR CODE SELF`` (six descriptors).

No shell, no search in PATH: each step is one ``execve`` of the file that was judged, by a descriptor whose inode is compared first.
Pipes, ``&&``, ``||``, ``;`` and redirects are made here. Standard library only; what is not as it was judged is refused, and ends the call.
"""

# Started by a bare interpreter from a memory file: nothing of ours can be imported, and pathlib would double its start-up time.
# ruff: noqa: PTH107, PTH112, PTH115, PTH116, PTH118, PTH123
import contextlib
import ctypes
import errno
import json
import os
import resource
import signal
import stat
import struct
import sys
from typing import Any, NoReturn

PR_SET_DUMPABLE = 4
SYS_OPENAT2 = 437
NO_XDEV, NO_MAGICLINKS, NO_SYMLINKS, BENEATH = 0x01, 0x02, 0x04, 0x08
"""RESOLVE_* of openat2(2)."""
NULL = "/dev/null"
REFUSED, NOT_FOUND = 126, 127
CODE_FD = "@code"
"""Word of an argv that stands for the descriptor with the Python code."""

libc = ctypes.CDLL(None, use_errno=True)
Step = dict[str, Any]


class RefusedStep(Exception):
    """It is not what was judged; ``args[0]`` says why."""


def main(argv: list[str]) -> NoReturn:
    """Reads the plan, runs it, tells how each step ended, and ends with the code of the last."""
    plan_fd, report_fd, out, err, code, own = (int(text) for text in argv)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # proc(5): no step may look into our memory or open our descriptors
    for fd in (plan_fd, report_fd, out, err, code, own):
        if fd >= 0:
            os.set_inheritable(fd, False)
    with open(plan_fd, "rb") as file:
        plan = json.loads(file.read())
    call = Call(plan, report_fd, out, err, code)
    sys.exit(call.run())


class Call:
    """One plan under way."""

    def __init__(self, plan: dict[str, Any], report_fd: int, out: int, err: int, code: int) -> None:
        self.token, self.workspace, self.steps = str(plan["token"]), str(plan["workspace"]), plan["steps"]
        self.report_fd, self.out, self.err, self.code = report_fd, out, err, code
        self.root = os.open(self.workspace, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        for name, value in plan["rlimits"].items():
            lower(getattr(resource, name), int(value))

    def run(self) -> int:
        """bash(1), Lists: ``&&`` and ``||`` have equal precedence and associate to the left; what is skipped leaves the code as it is."""
        code = 0
        for joined, pipeline in pipelines(self.steps):
            if (joined == "&&" and code) or (joined == "||" and not code):
                continue
            try:
                code = self.pipeline(pipeline)
            except RefusedStep as refused:
                self.report(refused=str(refused)[:400])
                return REFUSED
        return code

    def pipeline(self, steps: list[tuple[int, Step]]) -> int:
        """Starts all of them, waits for all of them; the code of the last. Raises RefusedStep once the others have been told to end."""
        # A call has no terminal and no person: a program that asks a question must get end-of-file and not wait.
        null = os.open(NULL, os.O_RDONLY | os.O_CLOEXEC)
        running: list[tuple[int, int]] = []
        source, why = null, ""
        for at, (number, step) in enumerate(steps):
            both = at + 1 < len(steps) and steps[at + 1][1]["joined"] == "|&"
            # Closed at exec everywhere else: a writer that a neighbour inherited would keep its reader from end-of-file.
            reading, writing = os.pipe2(os.O_CLOEXEC) if at + 1 < len(steps) else (-1, self.out)
            pid, why = self.start(step, source, writing, both)
            for fd in (source, writing if writing != self.out else -1):
                if fd >= 0:
                    os.close(fd)
            source = reading
            running.append((number, pid))
            if why:
                break
        if source >= 0:
            os.close(source)
        if why:
            for _, pid in running:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)  # our own children, not yet reaped
        code = 0
        for number, pid in running:
            code = self.reap(number, pid)
        if why:
            raise RefusedStep(why)
        return code

    def reap(self, number: int, pid: int) -> int:
        """Waits for one step and tells how it ended."""
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        code = 128 - status if status < 0 else status
        self.report(step=number, code=code, signal=-status if status < 0 else 0)
        return code

    def start(self, step: Step, source: int, sink: int, both: bool) -> tuple[int, str]:
        """Return the pid of a step, and why it is refused (empty: it runs, or it failed in a way that its own status reports)."""
        heard, told = os.pipe2(os.O_CLOEXEC)
        pid = os.fork()
        if not pid:
            self.become(step, source, sink, both, told)
        os.close(told)
        with open(heard, "rb") as file:
            return pid, file.read(2000).decode(errors="replace")  # end-of-file: it was executed

    def become(self, step: Step, source: int, sink: int, both: bool, told: int) -> NoReturn:
        """In the child: descriptors, folder, then the file that was judged and no other."""
        code = REFUSED
        try:
            place = [source, sink, self.err]
            folder = self.folder(step["cwd"])
            for redirect in step["redirects"]:
                self.redirect(redirect, place)
            if both:  # bash(1): |& is 2>&1 after all other redirects
                place[2] = place[1]
            put(place)
            os.fchdir(folder)
            for number in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            os.umask(0o022)
            self.execute(step)
        except RefusedStep as refused:
            os.write(told, str(refused).encode(errors="backslashreplace")[:1500] or b"refused")
        except OSError as error:
            with contextlib.suppress(OSError):
                words = f"[watchfloor: {step['argv'][0]}: {error.filename or ''} {error.strerror}]\n"
                os.write(self.err, words.encode(errors="backslashreplace"))
            code = NOT_FOUND if isinstance(error, FileNotFoundError) else 1
        except ValueError as error:
            os.write(told, f"it cannot be executed: {error}".encode(errors="backslashreplace")[:1500])
        os._exit(code)

    def folder(self, path: str) -> int:
        """Where the step runs: the real folder that was judged, no link in between."""
        return self.opened(path, os.O_PATH | os.O_DIRECTORY)

    def redirect(self, redirect: dict[str, Any], place: list[int]) -> None:
        """One redirect; 0, 1 and 2 alone."""
        number, mode = int(redirect["descriptor"]), redirect["mode"]
        if mode == "copy":
            copied = place[int(redirect["source"])]
            if copied < 0:  # bash: "Bad file descriptor", and the program is not run
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            place[number] = copied
        elif mode == "close":
            place[number] = -1
        else:
            place[number] = self.file(redirect["path"], mode)

    def file(self, path: str, mode: str) -> int:
        """The file of a redirect. Opened without cutting it: what it is is looked at first. O_NONBLOCK: a FIFO does not wait."""
        if path == NULL:
            return os.open(NULL, os.O_RDWR | os.O_CLOEXEC)
        flags = os.O_NONBLOCK | os.O_NOCTTY
        flags |= os.O_RDONLY if mode == "read" else os.O_WRONLY | os.O_CREAT | (os.O_APPEND if mode == "append" else 0)
        fd = self.opened(path, flags)
        seen = os.fstat(fd)
        # A second name may lie outside of the workspace: writing here would change a file that no rule was asked about.
        if not stat.S_ISREG(seen.st_mode) or (mode != "read" and seen.st_nlink != 1):
            raise RefusedStep(f"{path} is not the plain file with one name that was checked")
        os.set_blocking(fd, True)
        if mode == "write":
            os.ftruncate(fd, 0)
        return fd

    def opened(self, path: str, flags: int) -> int:
        """A real path: below the workspace and on its file system, or something that is only read. Raises RefusedStep, OSError."""
        inside = path == self.workspace or path.startswith(self.workspace + "/")
        if not inside and flags & (os.O_WRONLY | os.O_RDWR):
            raise RefusedStep(f"{path} is not in the workspace")
        try:
            if inside:
                return openat2(self.root, path[len(self.workspace) + 1 :] or ".", flags, BENEATH | NO_SYMLINKS | NO_MAGICLINKS | NO_XDEV)
            return openat2(-100, path, flags, NO_SYMLINKS | NO_MAGICLINKS)
        except OSError as error:
            if error.errno in (40, 18):  # ELOOP: a link; EXDEV: a way out, or another file system
                raise RefusedStep(f"{path} leads elsewhere than when it was checked") from error
            raise

    def execute(self, step: Step) -> NoReturn:
        """execve(2) by descriptor, once the file is the one that was judged. Raises RefusedStep, OSError."""
        path, judged = step["program"], step["file"]
        # O_PATH: a program that may be executed need not be readable, and nothing is opened that could act.
        fd = openat2(-100, path, os.O_PATH, NO_MAGICLINKS)
        seen = os.fstat(fd)
        # ctime too: unlike mtime no program can set it back after it has changed the file (utimensat(2)).
        if judged is None or [seen.st_dev, seen.st_ino, seen.st_ctime_ns] != list(judged):
            raise RefusedStep(f"{path} is no longer the file that was checked")
        argv = list(step["argv"])
        if CODE_FD in argv:
            os.set_inheritable(self.code, True)
            argv = [f"/proc/self/fd/{self.code}" if word == CODE_FD else word for word in argv]
        if begins_as_script(path, (seen.st_dev, seen.st_ino)):
            os.set_inheritable(fd, True)  # the kernel gives its interpreter /dev/fd/N to read (execveat(2), BUGS)
        os.execve(fd, argv, {**os.environ, **dict(step["environment"])})

    def report(self, **message: object) -> None:
        """One line to the supervisor, with the word that only it and we know: no step can speak for us."""
        with contextlib.suppress(OSError):
            os.write(self.report_fd, json.dumps({"token": self.token, **message}).encode() + b"\n")


def pipelines(steps: list[Step]) -> list[tuple[str, list[tuple[int, Step]]]]:
    """Steps grouped by what joins them: (``"" ; && ||``, steps with their numbers)."""
    found: list[tuple[str, list[tuple[int, Step]]]] = []
    for number, step in enumerate(steps):
        if step["joined"] in ("|", "|&") and found:
            found[-1][1].append((number, step))
        else:
            found.append((step["joined"], [(number, step)]))
    return found


def put(place: list[int]) -> None:
    """Makes these the descriptors 0, 1 and 2: first out of the way, then where they belong; -1: closed."""
    moved = [os.dup(fd) if fd >= 0 else -1 for fd in place]
    while any(0 <= fd <= 2 for fd in moved):
        moved = [os.dup(fd) if 0 <= fd <= 2 else fd for fd in moved]
    for number, fd in enumerate(moved):
        if fd >= 0:
            os.dup2(fd, number)
        else:
            with contextlib.suppress(OSError):
                os.close(number)


def begins_as_script(path: str, inode: tuple[int, int]) -> bool:
    """Whether that very file begins with ``#!``. One that may only be executed, or is another by now, counts as none."""
    try:
        with open(path, "rb", buffering=0) as file:
            seen = os.fstat(file.fileno())
            return (seen.st_dev, seen.st_ino) == inode and file.read(2) == b"#!"
    except OSError:
        return False


def openat2(folder: int, path: str, flags: int, resolve: int) -> int:
    """openat2(2). Raises OSError; ENOSYS where the kernel has none (Linux 5.6)."""
    mode = 0o644 if flags & os.O_CREAT else 0
    how = struct.pack("QQQ", flags | os.O_CLOEXEC, mode, resolve)
    fd = int(libc.syscall(SYS_OPENAT2, folder, ctypes.c_char_p(os.fsencode(path)), ctypes.c_char_p(how), ctypes.c_size_t(24)))
    if fd < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return fd


def lower(which: int, value: int) -> None:
    """Lowers a resource limit, never raises it."""
    hard = resource.getrlimit(which)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))


if __name__ == "__main__":
    main(sys.argv[1:])
