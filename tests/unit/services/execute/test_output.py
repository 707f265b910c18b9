"""What a call writes: handed on up to a bound, counted beyond, and a flood is one."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Iterator

import pytest

from console.api.agents.execute import ExecuteOutput
from console.services.execute import output as output_module
from console.services.execute.output import PIECE, CallOutput

Pipes = tuple[tuple[int, int], tuple[int, int]]


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    made = (os.pipe(), os.pipe())
    for reading, _ in made:
        os.set_blocking(reading, False)
    yield made
    for fd in (fd for ends in made for fd in ends):
        os.close(fd)


def text(told: list[ExecuteOutput], stream: str) -> bytes:
    return b"".join(base64.b64decode(one.b64) for one in told if one.stream == stream)


async def test_pieces_come_as_they_are_written_and_bytes_stay_bytes(pipes: Pipes) -> None:
    told: list[ExecuteOutput] = []
    (out, write_out), (err, write_err) = pipes
    output = CallOutput(out, err, 1000, told.append)
    output.start()
    os.write(write_out, b"\xff\0<b>")
    while not told:
        await asyncio.sleep(0.01)
    os.write(write_err, b"\x1b[31m")
    output.stop()
    output.drain()
    assert text(told, "stdout") == b"\xff\0<b>" and text(told, "stderr") == b"\x1b[31m" and not output.is_flood
    assert (output.out.seen, output.out.cut) == (5, 0)


async def test_each_stream_and_both_together_are_bounded_and_what_was_cut_is_counted(pipes: Pipes) -> None:
    told: list[ExecuteOutput] = []
    (out, write_out), (err, write_err) = pipes
    output = CallOutput(out, err, 1000, told.append)
    os.write(write_out, b"o" * 3000)
    os.write(write_err, b"e" * 3000)
    output.drain()
    assert len(text(told, "stdout")) == 1000 and len(text(told, "stderr")) == 500
    assert (output.out.seen, output.out.cut, output.err.cut) == (3000, 2000, 2500)


async def test_a_flood_is_one_and_the_end_of_a_stream_is_its_end(pipes: Pipes) -> None:
    (out, write_out), (err, _) = pipes
    output = CallOutput(out, err, 1000, lambda piece: None)
    output.flood_bytes = 5000
    for _ in range(3):
        os.write(write_out, b"x" * 2000)
        output.drain()
    assert output.is_flood


async def test_known_secrets_are_taken_out(pipes: Pipes) -> None:
    told: list[ExecuteOutput] = []
    (out, write_out), (err, _) = pipes
    output = CallOutput(out, err, 1000, told.append, lambda data: data.replace(b"s3cr3t", b"[hidden]"))
    os.write(write_out, b"a s3cr3t")
    output.drain()
    assert text(told, "stdout") == b"a [hidden]"


async def test_a_secret_that_the_end_of_a_piece_cuts_is_taken_out(pipes: Pipes) -> None:
    told: list[ExecuteOutput] = []
    (out, write_out), (err, _) = pipes
    output = CallOutput(out, err, 1 << 20, told.append, lambda data: data.replace(b"s3cr3t", b"[hidden]"))
    line = b"x" * 99 + b"\n"
    before = line * ((PIECE - 3) // 100)
    before += b"y" * (PIECE - 3 - len(before) - 1) + b"\n"
    os.write(write_out, before + b"s3cr3t and more")
    output.drain()
    assert text(told, "stdout") == before + b"[hidden] and more" and output.out.cut == 0 and output.out.seen == PIECE + 12


async def test_tiny_pieces_come_together(pipes: Pipes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_module, "REST_S", 3600)
    told: list[ExecuteOutput] = []
    (out, write_out), (err, _) = pipes
    output = CallOutput(out, err, 1000, told.append)
    output.start()
    for _ in range(100):
        os.write(write_out, b"x")
        await asyncio.sleep(0)
    while not told:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0)
    assert len(told) == 1, "it rests"
    output.stop()
    output.drain()
    assert len(told) == 2 and text(told, "stdout") == b"x" * 100


async def test_the_bound_leaves_no_half_of_a_secret(pipes: Pipes) -> None:
    told: list[ExecuteOutput] = []
    (out, write_out), (err, _) = pipes
    output = CallOutput(out, err, 6, told.append, lambda data: data.replace(b"s3cr3t", b"[hidden]"))
    os.write(write_out, b"a s3cr3t")
    output.drain()
    assert text(told, "stdout") == b"a [hid" and output.out.cut == 2
