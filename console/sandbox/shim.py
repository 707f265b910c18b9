"""The process between the supervisor and an agent, run as ``python -I -S shim.py SPEC STATUS GATE OUTPUT`` (four descriptors).

It enters the agent's cgroups first, makes its namespaces, waits at the gate, starts the agent and follows it to its end. It reaps, keeps
the output within its bound and reports the exit code. Standard library only; it outlives its supervisor. The spec (a JSON object, see
launcher.py) comes through a pipe and never appears in argv or an environment. It is one file, because ``-I -S`` leaves no path from which
our own modules could be imported.
"""

# pathlib would double the start-up time of every agent.
# ruff: noqa: PTH100, PTH103, PTH109, PTH110, PTH112, PTH116, PTH118, PTH120, PTH208
import codecs
import contextlib
import ctypes
import errno
import fcntl
import json
import os
import resource
import runpy
import select
import signal
import socket
import stat
import struct
import sys
import time
import warnings  # noqa: F401 - os.execvpe imports it, and then it may be out of sight
from typing import Any, NoReturn

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET = 0x00020000, 0x08000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
MNT_DETACH = 2
PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 4, 22, 24, 36, 38
CAP_KILL = 1 << 5
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
LOOK_INSIDE = "/.watchfloor/look.py"
LIMIT_NOTE = b"\n[watchfloor: the output limit is reached; the rest is not kept]\n"
INFO_S = 20.0
STRAYS_S = 30.0

libc = ctypes.CDLL(None, use_errno=True)
Spec = dict[str, Any]
look: dict[str, Any] = {}
"""The names of look.py, and its ``text``."""


def main(argv: list[str]) -> NoReturn:
    """Enters the leaves, forks the init of the sandbox, reports its pid and ends."""
    spec_fd, status, gate, output = (int(text) for text in argv)
    for fd in (spec_fd, status, gate, output):
        # Kept across fork, closed at exec: no program that runs from here on may write a report or read the gate.
        os.set_inheritable(fd, False)
    spec: Spec = json.loads(_read_all(spec_fd))
    # Read while our own files can still be read: what looks at the cage from inside.
    look.update(runpy.run_path(spec["look_source"]))
    with open(spec["look_source"], "rb") as file:
        look["text"] = file.read()
    load_nothing_later()
    try:
        enter_leaves(spec)
        # unshare(CLONE_NEWPID) moves only children (pid_namespaces(7)), so the fork below makes the namespace's PID 1.
        if spec["pid_namespace"]:
            _call(libc.unshare(CLONE_NEWPID), "unshare PID namespace")
        pid = os.fork()
    except OSError as error:
        report(status, error=str(error))
        os._exit(1)
    if pid:
        # The init is left to the machine's own reaper, so that it does not end with its supervisor.
        report(status, init=pid)
        os._exit(0)
    try:
        sandbox_init(spec, status, gate, output)
    except (OSError, ImportError, LookupError, ValueError) as error:
        report(status, error=str(error) if isinstance(error, OSError) else f"our own program failed ({type(error).__name__}: {error})")
    os._exit(1)


def load_nothing_later() -> None:
    """Loads the codecs used below, then forbids imports: the masks may hide Python's library. A forgotten one now fails in every test."""
    # Python loads a codec from disk at its first use, which is after the masks have hidden that disk.
    codecs.lookup("unicode_escape")
    sys.meta_path.clear()


def sandbox_init(spec: Spec, status: int, gate: int, output: int) -> NoReturn:
    """PID 1 of the sandbox (or, without a PID namespace, the agent's parent and subreaper)."""
    os.setsid()  # the agent's first session is led by this process: whoever follows it by session can tell it from ours
    _call(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "subreaper")
    if spec["mount_namespace"]:
        build_view(spec)
    if spec["net_namespace"]:
        raise_loopback()
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("500")
    os.setpriority(os.PRIO_PROCESS, 0, max(0, os.getpriority(os.PRIO_PROCESS, 0)))  # who starts it may be ahead, to stop another one
    wake, (out_r, out_w) = _sigchld_pipe(), os.pipe()
    # While we still hold CAP_SETPCAP: become_harmless and the agent have given it up (capabilities(7)).
    drop_bounding_set(spec)
    wrapped = start_wrapped(spec, (out_r, out_w), (status, gate)) if spec["wrap"] else None
    alone = not spec["pid_namespace"] and not wrapped  # in a PID namespace the kernel ends everybody with us
    asked = _sigterm_flag() if alone else []
    report(status, ready=True, child=wrapped.child if wrapped else 0)
    opened = _read_one(gate) == b"G" and not asked  # end-of-file: the supervisor is gone, and the gate stays shut
    main_child = pass_gate(spec, wrapped, opened, (out_w, status, gate))
    os.close(gate)
    # While we hold a writer, our own read end never sees end-of-file when the agent is gone.
    os.close(out_w)
    become_harmless(spec, may_kill=alone or spec["tied"])
    code = follow(main_child, out_r, wake, output, int(spec["output_max"]), asked, status if spec["tied"] else -1)
    if alone:
        end_strays()
    elif asked and wrapped:
        wrapped.kill()
    report(status, exit=code)
    os._exit(0)


def pass_gate(spec: Spec, wrapped: "Wrapped | None", opened: bool, fds: tuple[int, int, int]) -> int:
    """Starts the agent, or ends without having started it; the pid of its first process."""
    if wrapped:
        if opened:
            wrapped.open_gate()
        else:
            wrapped.kill()
        return wrapped.main
    if not opened:
        os._exit(0)
    main_child = os.fork()
    if not main_child:
        become_agent(spec, *fds)
    return main_child


def enter_leaves(spec: Spec) -> None:
    """Moves this process, and so whatever it starts, into the leaf and the limit leaves. Any failure is final.

    cgroups(7): writing 0 to cgroup.procs moves the writing process, whatever PID namespace it is in.
    """
    for leaf in [*spec["limit_leaves"], spec["leaf"]]:
        if leaf:
            with open(os.path.join(leaf, "cgroup.procs"), "w") as file:
                file.write("0")


def build_view(spec: Spec) -> None:
    """A private mount namespace: own /proc, masks over what the agent may not see, its own things bound back."""
    network = CLONE_NEWNET if spec["net_namespace"] else 0
    _call(libc.unshare(CLONE_NEWNS | CLONE_NEWIPC | network), "unshare")
    make_private()
    if spec["pid_namespace"]:
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    # Opened before the masks cover the paths, and bound back from these descriptors afterwards.
    keeps = [(os.open(source, os.O_PATH | os.O_NOFOLLOW), target, read_only) for source, target, read_only in spec["keep"]]
    masks = mask_list(spec["hide"], [target for _, target, _ in spec["keep"]], spec["uid"], spec["gid"])
    for path in masks:
        mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755,size=256k")
    for fd, target, read_only in keeps:
        bind(fd, target, read_only, any(is_below(target, path) for path in masks))
        os.close(fd)
    for path in masks:
        # Read-only last: the mount points of what is bound back have to be made inside the mask first.
        mount(None, path, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)
    for path in foreign_mounts():
        with contextlib.suppress(FileNotFoundError):
            mount("tmpfs", path, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0555,size=4k")
    # The machine's own shared memory is a way to programs outside that no network mode and no mask of folders closes.
    if os.path.isdir("/dev/shm"):
        mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=1777,size=100m")


def make_private() -> None:
    """Cuts this namespace off from the machine's: what is mounted here never shows there, nor the other way round."""
    try:
        mount(None, "/", None, MS_REC | MS_PRIVATE)
    except OSError as error:
        # EINVAL says that "/" is no mount point, which is so in a chroot (mount(2)).
        if error.errno != errno.EINVAL:
            raise
        leave_chroot()


def leave_chroot() -> None:
    """In a chroot "/" is no mount point: makes it one, and the root of this namespace (user_namespaces(7) refuses chroots).

    The way out of a chroot is the usual one of a privileged process: a root below the working directory.
    """
    here = os.open("/", os.O_PATH | os.O_DIRECTORY)
    os.chroot("/proc")
    os.fchdir(here)
    while not os.path.samestat(os.stat("."), os.stat("..")):
        os.chdir("..")
    os.chroot(".")
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    os.fchdir(here)
    path = os.getcwd()
    mount(path, path, None, MS_BIND | MS_REC)
    os.chdir(path)
    number = SYS_PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, "pivot_root is not known for this processor")
    # pivot_root(2), NOTES: with "." for both the old root lands on top, and is detached.
    _call(libc.syscall(number, b".", b"."), "pivot_root")
    _call(libc.umount2(b".", MNT_DETACH), "umount")
    os.chdir("/")
    os.close(here)


def mask_list(hide: list[str], targets: list[str], uid: int, gid: int) -> list[str]:
    """Folders to mask: the hidden ones, and above each target the first folder the agent's uid could not pass anyway."""
    wanted = {path for path in hide if os.path.isdir(path)}
    for target in targets:
        closed = first_closed(target, uid, gid)
        if closed:
            wanted.add(closed)
    if "/" in wanted:
        raise OSError(errno.EACCES, f"the whole file system would be masked, or uid {uid} may not pass / itself (chmod 755 /)")
    return sorted(path for path in wanted if not any(path != other and is_below(path, other) for other in wanted))


def first_closed(target: str, uid: int, gid: int) -> str | None:
    """The outermost folder above ``target`` that ``uid`` may not search, or None."""
    parts = target.split("/")
    for count in range(1, len(parts)):
        path = "/".join(parts[:count]) or "/"
        try:
            seen = os.stat(path)
        except FileNotFoundError:
            return None
        # As the kernel decides: the owner's bits alone count for the owner, even where others may do more (path_resolution(7)).
        shift = 6 if seen.st_uid == uid else 3 if seen.st_gid == gid else 0
        if stat.S_ISDIR(seen.st_mode) and not (seen.st_mode >> shift) & 1:
            return path
    return None


def is_below(path: str, folder: str) -> bool:
    """Whether ``path`` is ``folder`` or inside it."""
    return path == folder or path.startswith(folder + "/")


def bind(fd: int, target: str, read_only: bool, masked: bool) -> None:
    """Binds an open path at ``target``; only below a mask is a missing mount point made."""
    if masked:
        make_mount_point(target, stat.S_ISDIR(os.fstat(fd).st_mode))
    elif not os.path.exists(target):
        raise OSError(errno.ENOENT, f"{target} does not exist here; without a container things can only be bound over existing paths")
    mount(f"/proc/self/fd/{fd}", target, None, MS_BIND)
    flags = MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | (MS_RDONLY if read_only else 0)
    mount(None, target, None, flags)


def make_mount_point(target: str, is_folder: bool) -> None:
    """An empty folder or file at ``target``, inside a mask."""
    os.makedirs(target if is_folder else os.path.dirname(target), mode=0o755, exist_ok=True)
    if not is_folder:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def foreign_mounts() -> list[str]:
    """Mounts that would show the machine's processes or cgroups: every cgroup tree, and every /proc but our own."""
    found = {"/sys/fs/cgroup"}
    with open("/proc/self/mountinfo") as file:
        for line in file:
            fields, _, rest = line.partition(" - ")
            path = fields.split()[4].encode().decode("unicode_escape")
            # A cgroup tree in sight names every other agent; one that is writable lets a process leave its leaf.
            if rest.split()[0] in ("cgroup", "cgroup2", "proc") and path != "/proc":
                found.add(path)
    found = {path for path in found if os.path.isdir(path)}
    return sorted(path for path in found if not any(path != other and is_below(path, other) for other in found))


def raise_loopback() -> None:
    """netdevice(7): a new network namespace has one interface, lo, and it is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(sock, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """mount(2); OSError names the target."""
    arguments = [os.fsencode(text) if text is not None else None for text in (source, target, kind)]
    _call(libc.mount(*arguments, ctypes.c_ulong(flags), os.fsencode(data) if data else None), f"mount {target}")


def become_agent(spec: Spec, out_w: int, status: int, gate: int) -> NoReturn:
    """The forked child: takes the agent's identity and limits, has itself looked at, runs its command. Exit 126 or 127 when that fails."""
    try:
        _redirect(out_w)
        low, high = sorted((status, gate))
        for first, last in ((3, low), (low + 1, high), (high + 1, 65536)):
            os.closerange(first, last)
        give_up_privileges(spec)
        os.chdir(spec["cwd"])
        # Required for a filter without CAP_SYS_ADMIN (seccomp(2)), and no set-user-ID program gives anything back.
        _call(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
        if spec["seccomp"]:
            install_filter(bytes.fromhex(spec["seccomp"]))
        if not look["report"](status, gate):
            os._exit(126)
        os.execvpe(spec["argv"][0], spec["argv"], spec["env"])
    except (OSError, ValueError) as error:
        os.write(2, f"[watchfloor: cannot run {spec['argv'][0]!r}: {error}]\n".encode(errors="backslashreplace"))
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def give_up_privileges(spec: Spec) -> None:
    """Resource limits, default signals, then groups, gid and uid, in that order (setuid last: it takes the right to do the rest)."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    # Ignored and blocked signals outlive exec (signal(7)): a pipeline of an agent that ignores SIGPIPE, as Python does, goes on writing.
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.umask(0o022)
    # A core file carries the agent's memory, secrets included, to wherever core_pattern sends it.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name, value in spec["rlimits"].items():
        _lower_limit(getattr(resource, name), int(value))
    if spec["drop"]:
        os.setgroups([])
        os.setresgid(spec["gid"], spec["gid"], spec["gid"])
        os.setresuid(spec["uid"], spec["uid"], spec["uid"])


def _lower_limit(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(which, (value, value))


def install_filter(program: bytes) -> None:
    """seccomp(2), filter mode, for this process and all it starts."""
    buffer = ctypes.create_string_buffer(program, len(program))
    fprog = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    _call(libc.prctl(PR_SET_SECCOMP, 2, ctypes.c_char_p(fprog), 0, 0), "seccomp")


def drop_bounding_set(spec: Spec) -> None:
    """No program run from here on can gain a capability by its file; EINVAL ends the list of those this kernel has."""
    if spec["drop"]:
        for number in range(64):
            if libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0):
                break


def become_harmless(spec: Spec, *, may_kill: bool) -> None:
    """From here on the init only reaps, copies output and reports. It has no capability, and no process may trace it.

    ``may_kill``: it keeps CAP_KILL, where it ends the strays of another uid itself.
    """
    _redirect(os.open("/dev/null", os.O_WRONLY | os.O_CLOEXEC))
    # Not dumpable: a process of the same account can neither trace it nor read its memory (ptrace(2)).
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    if spec["drop"]:
        header = struct.pack("Ii", 0x20080522, 0)  # capset(2): _LINUX_CAPABILITY_VERSION_3
        kept = CAP_KILL if may_kill else 0
        _call(libc.capset(ctypes.c_char_p(header), ctypes.c_char_p(struct.pack("6I", kept, kept, 0, 0, 0, 0))), "capset")


def _redirect(out: int) -> None:
    null = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.dup2(out, 1)
    os.dup2(out, 2)


class Wrapped:
    """bwrap between us and the agent, waiting on a descriptor of ours."""

    def __init__(self, main_child: int, child: int, block_w: int) -> None:
        self.main = main_child
        self.child = child
        """bwrap's init inside the sandbox, as a pid of ours."""
        self._block_w = block_w

    def open_gate(self) -> None:
        """Lets bwrap run the agent."""
        os.write(self._block_w, b"G")
        os.close(self._block_w)

    def kill(self) -> None:
        """Ends the sandbox without ever opening the gate."""
        for pid in (self.child, self.main):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # both are our own descendants and not yet reaped


def start_wrapped(spec: Spec, output: tuple[int, int], door: tuple[int, int]) -> Wrapped:
    """Starts bwrap up to its block-fd and learns the pid of its init. OSError with what it said when it makes no sandbox.

    ``door`` is where what runs inside reports and is answered (look.py), when the spec names a program for it.
    """
    out_r, out_w = output
    block_r, block_w = os.pipe()
    # Opened for both directions, so that bwrap never reads end-of-file there: end-of-file would open the gate.
    block = os.open(f"/proc/self/fd/{block_r}", os.O_RDWR | os.O_CLOEXEC)
    info_r, info_w = os.pipe()
    arguments = _memory_file("\0".join(spec["wrap_options"]).encode(errors="surrogateescape") + b"\0")
    words = [*spec["wrap"], "--args", str(arguments), "--block-fd", str(block), "--info-fd", str(info_w)]
    passed = [arguments, block, info_w]
    if spec["seccomp"]:
        passed.append(_memory_file(bytes.fromhex(spec["seccomp"])))
        words += ["--seccomp", str(passed[-1])]
    if spec["look_inside"]:
        passed.append(_memory_file(look["text"]))
        words[1:1] = ["--perms", "0444", "--ro-bind-data", str(passed[-1]), LOOK_INSIDE]
    looker = [*spec["looker"], *map(str, door), "--"] if spec["looker"] else []
    pid = os.fork()
    if not pid:
        _become_wrapper(spec, out_w, [*words, "--", *looker, *spec["argv"]], [*passed, *(door if looker else ())])
    for fd in (block_r, info_w, *passed[:2], *passed[3:]):
        os.close(fd)
    try:
        return Wrapped(pid, _child_pid(info_r), block_w)
    except OSError as error:
        os.set_blocking(out_r, False)
        said = b""
        with contextlib.suppress(OSError):
            said = os.read(out_r, 300)
        raise OSError(error.errno, f"{error.strerror}: {said.decode(errors='replace').strip()}") from error


def _become_wrapper(spec: Spec, out_w: int, words: list[str], passed: list[int]) -> NoReturn:
    try:
        _redirect(out_w)
        for fd in passed:
            os.set_inheritable(fd, True)
        give_up_privileges(spec)
        os.chdir("/")
        # An empty environment: bwrap itself runs outside the sandbox, and LD_PRELOAD would be the agent's.
        os.execve(words[0], words, {})
    except (OSError, ValueError) as error:
        os.write(2, f"[watchfloor: cannot run {words[0]!r}: {error}]\n".encode(errors="backslashreplace"))
    os._exit(126)


def _memory_file(content: bytes) -> int:
    fd = os.memfd_create("watchfloor", os.MFD_CLOEXEC)
    with open(fd, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _child_pid(info_r: int) -> int:
    """The ``child-pid`` of bwrap's --info-fd. OSError when bwrap ended, or said nothing in time."""
    text, deadline = b"", time.monotonic() + INFO_S
    poll = select.poll()
    poll.register(info_r, select.POLLIN)
    while poll.poll(max(0, int((deadline - time.monotonic()) * 1000))):
        part = os.read(info_r, 4096)
        text += part
        with contextlib.suppress(ValueError, KeyError):
            pid = int(json.loads(text)["child-pid"])
            os.close(info_r)
            return pid
        if not part:
            break
    raise OSError(errno.EIO, "bubblewrap did not start its sandbox")


def follow(main_child: int, out_r: int, wake: int, output: int, limit: int, asked: list[int], tied: int = -1) -> int:
    """Reap and copy until the agent's first process has ended, or we are ``asked`` to end it. Returns its exit code, or 128 + signal.

    ``tied``: a pipe whose reader it must not outlive (poll(2): POLLERR once the pipe has no reader any more).
    """
    os.set_blocking(out_r, False)
    poll = select.poll()
    poll.register(out_r, select.POLLIN)
    poll.register(wake, select.POLLIN)
    if tied >= 0:
        poll.register(tied, 0)
    kept = os.fstat(output).st_size
    while True:
        code = 128 + signal.SIGKILL if asked else reap(main_child)
        for fd, _ in poll.poll(0 if code is not None else None):
            if fd == wake:
                os.read(wake, 4096)
            elif fd == tied:
                asked.append(signal.SIGHUP)
            else:
                kept, more = copy(out_r, output, kept, limit)
                if not more:
                    poll.unregister(out_r)
        if code is not None:
            for _ in range(1024):  # what was in the pipe at the end; strays may go on writing, and are not waited for
                before = kept
                kept, more = copy(out_r, output, kept, limit)
                if not more or kept == before:
                    break
            return code


def end_strays() -> None:
    """Kill whatever the agent left, until the kernel reports that we have no child any more (wait(2), ECHILD)."""
    # Orphans below us become our children (subreaper). A child that is not reaped keeps its pid, so no other process can be hit.
    deadline = time.monotonic() + STRAYS_S
    while time.monotonic() < deadline:
        for pid in children():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            time.sleep(0.001)
            continue
        return


def children() -> list[int]:
    """Our children, zombies included."""
    me = os.getpid()
    try:
        with open(f"/proc/{me}/task/{me}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and _parent(name) == me]


def _parent(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def reap(main_child: int) -> int | None:
    """Collects every child that has ended; the exit code of the main one if it was among them."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == main_child:
            code = os.waitstatus_to_exitcode(status)
            found = 128 - code if code < 0 else code


def copy(out_r: int, output: int, kept: int, limit: int) -> tuple[int, bool]:
    """Moves one piece of output into the file while it is below ``limit``; (bytes kept, whether the pipe is still open)."""
    try:
        data = os.read(out_r, 65536)
    except BlockingIOError:
        return kept, True
    if not data:
        return kept, False
    room = limit - kept
    if room > 0:
        with contextlib.suppress(OSError):  # a full disk must not stop the agent's parent
            os.write(output, data[:room] + (LIMIT_NOTE if len(data) >= room else b""))
    return kept + len(data), True


def _sigterm_flag() -> list[int]:
    """Fills when SIGTERM came: the guard asks the keeper, which can see its children without a race, to end them."""
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    return asked


def _sigchld_pipe() -> int:
    wake_r, wake_w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_w, warn_on_full_buffer=False)
    return wake_r


def report(status: int, **message: object) -> None:
    """One JSON line to the supervisor, if there still is one."""
    with contextlib.suppress(OSError):
        os.write(status, json.dumps(message).encode() + b"\n")


def _read_all(fd: int) -> bytes:
    with open(fd, "rb") as file:
        return file.read()


def _read_one(fd: int) -> bytes:
    try:
        return os.read(fd, 1)
    except OSError:
        return b""


def _call(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


if __name__ == "__main__":
    main(sys.argv[1:])
