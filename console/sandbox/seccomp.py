"""Our own seccomp filter (seccomp(2)), as bytes of classic BPF: what no agent needs and what reaches past its namespaces.

It is a list of refusals on top of everything else (no capabilities, no_new_privs, Docker's own profile), not a sandbox by
itself. AF_VSOCK is not subject to network namespaces, io_uring makes sockets without the socket call, so both are refused.
"""

from __future__ import annotations

import platform
import struct

_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_X32_BIT = 0x40000000
_CLONE_NEWUSER = 0x10000000
_AF_PACKET, _AF_VSOCK = 17, 40

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# name: (x86_64, aarch64), from the kernel's unistd tables.
_REFUSED = {
    # Keyrings are per account and not per namespace: an agent could read what another program of its account left there.
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    # A process that handles its own page faults can hold a kernel read of its memory for as long as it likes.
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "kexec_load": (246, 104),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    # Opens a file by number, past every folder's rights: the usual way out of a container that has CAP_DAC_READ_SEARCH.
    "open_by_handle_at": (304, 265),
}
_REFUSED_STRICT = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    # Entering or building another view of mounts is the first step of most ways out; no contained program needs it.
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
}
_SOCKET, _CLONE, _UNSHARE, _CLONE3 = (41, 198), (56, 220), (272, 97), 435


def program(*, strict: bool, user_namespaces: bool = False, machine: str | None = None) -> bytes:
    """Return the filter for this processor, or empty bytes where its numbers are not known (shown as a note).

    ``strict`` also refuses debugging and mounting: contained agents need neither. ``user_namespaces``: the program builds a sandbox
    of its own and may create them; never with ``strict``. A user namespace gives an agent every capability inside it.
    """
    machine = machine or platform.machine()
    if machine not in _AUDIT_ARCH:
        return b""
    column = 0 if machine == "x86_64" else 1
    code = [
        _instruction(_LOAD, 4),  # seccomp_data.arch
        _instruction(_EQUAL, _AUDIT_ARCH[machine], 1, 0),
        _instruction(_RETURN, _ERRNO | _ENOSYS),  # a second set of numbers would be a way around this one
        _instruction(_LOAD, 0),  # seccomp_data.nr
    ]
    if machine == "x86_64":
        # x32 calls have the same architecture value and this bit in their number, so they would pass every comparison below.
        code += [_instruction(_AT_LEAST, _X32_BIT, 0, 1), _instruction(_RETURN, _ERRNO | _ENOSYS)]
    for numbers in [*_REFUSED.values(), *(_REFUSED_STRICT.values() if strict else ())]:
        code += [_instruction(_EQUAL, numbers[column], 0, 1), _instruction(_RETURN, _ERRNO | _EPERM)]
    if strict or not user_namespaces:
        # clone3 passes its flags by pointer, which no filter can read: ENOSYS makes libc fall back to clone.
        code += [_instruction(_EQUAL, _CLONE3, 0, 1), _instruction(_RETURN, _ERRNO | _ENOSYS)]
        for call in (_CLONE, _UNSHARE):
            code += _when_bits(call[column], _CLONE_NEWUSER)
    code += _when_family(_SOCKET[column])
    code.append(_instruction(_RETURN, _ALLOW))
    return b"".join(code)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _when_bits(call: int, bits: int) -> list[bytes]:
    """EPERM when ``call``'s first argument has any of ``bits``; the number is loaded again afterwards."""
    return [
        _instruction(_EQUAL, call, 0, 4),
        _instruction(_LOAD, 16),  # seccomp_data.args[0], low half
        _instruction(_ANY_BIT, bits, 0, 1),
        _instruction(_RETURN, _ERRNO | _EPERM),
        _instruction(_LOAD, 0),
    ]


def _when_family(call: int) -> list[bytes]:
    """EPERM for socket(AF_PACKET) and socket(AF_VSOCK)."""
    return [
        _instruction(_EQUAL, call, 0, 4),
        _instruction(_LOAD, 16),
        _instruction(_EQUAL, _AF_PACKET, 1, 0),
        _instruction(_EQUAL, _AF_VSOCK, 0, 1),
        _instruction(_RETURN, _ERRNO | _EPERM),
    ]
