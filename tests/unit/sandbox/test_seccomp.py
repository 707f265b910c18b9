"""The filter, run by a small interpreter of classic BPF: which calls it lets pass, on both processors."""

from __future__ import annotations

import struct

import pytest

from console.sandbox.seccomp import program

ALLOW, EPERM, ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026
ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CALLS = {
    "x86_64": {"read": 0, "socket": 41, "clone": 56, "unshare": 272, "ptrace": 101, "keyctl": 250, "mount": 165, "execve": 59},
    "aarch64": {"read": 63, "socket": 198, "clone": 220, "unshare": 97, "ptrace": 117, "keyctl": 219, "mount": 40, "execve": 221},
}
MACHINES = ("x86_64", "aarch64")


def verdict(code: bytes, arch: int, call: int, first: int = 0) -> int:
    data = struct.pack("=IIQ6Q", call, arch, 0, first, 0, 0, 0, 0, 0)
    steps = [struct.unpack_from("=HBBI", code, at) for at in range(0, len(code), 8)]
    at = accumulator = 0
    while True:
        kind, if_true, if_false, value = steps[at]
        at += 1
        match kind:
            case 0x20:
                accumulator = struct.unpack_from("=I", data, value)[0]
            case 0x15:
                at += if_true if accumulator == value else if_false
            case 0x35:
                at += if_true if accumulator >= value else if_false
            case 0x45:
                at += if_true if accumulator & value else if_false
            case 0x06:
                return int(value)
            case _:
                raise AssertionError(f"instruction {kind:#x}")


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("strict", [True, False])
def test_ordinary_calls_pass(machine: str, strict: bool) -> None:
    code = program(strict=strict, machine=machine)
    calls = CALLS[machine]
    for call, first in ((calls["read"], 0), (calls["execve"], 0), (calls["socket"], 2), (calls["socket"], 1), (calls["clone"], 0x11)):
        assert verdict(code, ARCH[machine], call, first) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("strict", [True, False])
def test_what_reaches_past_namespaces_is_refused(machine: str, strict: bool) -> None:
    code = program(strict=strict, machine=machine)
    calls = CALLS[machine]
    for call, first in ((calls["socket"], 40), (calls["socket"], 17), (calls["keyctl"], 0), (425, 0)):
        assert verdict(code, ARCH[machine], call, first) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_strict_also_refuses_debugging_and_mounts(machine: str) -> None:
    calls = CALLS[machine]
    for call in (calls["ptrace"], calls["mount"]):
        assert verdict(program(strict=True, machine=machine), ARCH[machine], call) == EPERM
        assert verdict(program(strict=False, machine=machine), ARCH[machine], call) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("strict", "asked", "allowed"), [(True, False, False), (True, True, False), (False, False, False), (False, True, True)]
)
def test_user_namespaces_are_only_for_programs_that_build_a_sandbox_of_their_own(
    machine: str, strict: bool, asked: bool, allowed: bool
) -> None:
    code, calls = program(strict=strict, user_namespaces=asked, machine=machine), CALLS[machine]
    for call, first in ((calls["clone"], 0x10000011), (calls["unshare"], 0x10020000)):
        assert verdict(code, ARCH[machine], call, first) == (ALLOW if allowed else EPERM)
    assert verdict(code, ARCH[machine], 435) == (ALLOW if allowed else ENOSYS)  # clone3 passes its flags where no filter sees them


@pytest.mark.parametrize("machine", MACHINES)
def test_other_sets_of_numbers_are_no_way_around(machine: str) -> None:
    code = program(strict=False, machine=machine)
    assert verdict(code, 0x40000003, 3) == ENOSYS  # i386
    if machine == "x86_64":
        assert verdict(code, ARCH[machine], 0x40000000 | 41, 40) == ENOSYS  # x32


def test_an_unknown_processor_has_no_filter_and_the_real_one_has() -> None:
    assert program(strict=True, machine="riscv64") == b""
    assert len(program(strict=True, machine="x86_64")) % 8 == 0
