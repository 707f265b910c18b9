"""The host state survives; lost, damaged or foreign it reads as a new host."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from console.remotekill.document import Order
from console.remotekill.machine import HostState, Mode
from console.remotekill.state_file import load_state, save_state

A = Order("1:sha256:" + "a" * 64)
N = Order("4/9:sha256:" + "b" * 64)


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    state = HostState(soft=False, epoch=7, latched=(A, N), released=(A,), settled=3, judged=(5, 6))
    save_state(tmp_path / "deep" / "state.json", state)
    assert load_state(tmp_path / "deep" / "state.json") == (state, "")
    assert (tmp_path / "deep" / "state.json").stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path / "deep") == ["state.json"]


def test_a_missing_state_is_a_new_host(tmp_path: Path) -> None:
    state, words = load_state(tmp_path / "none.json")
    assert state == HostState() and state.mode is Mode.SOFT and "new one" in words


@pytest.mark.parametrize(
    "change",
    [
        {"version": 3},
        {"settled": -1},
        {"settled": True},
        {"judged": 1},
        {"judged": ["1"]},
        {"epoch": -1},
        {"epoch": True},
        {"epoch": 2**60},
        {"soft": 0},
        {"latched": ["x"]},
        {"latched": A},
        {"released": None},
    ],
)
def test_a_damaged_state_is_a_new_host(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "state.json"
    save_state(path, HostState(soft=False, epoch=7))
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    state, words = load_state(path)
    assert state == HostState() and "damaged" in words


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff", b"[" * 50000])
def test_bytes_that_are_no_state_are_a_new_host(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(raw)
    assert load_state(path)[0] == HostState()


def test_a_folder_in_its_place_is_a_new_host_and_cannot_be_saved(tmp_path: Path) -> None:
    assert load_state(tmp_path)[0] == HostState()
    with pytest.raises(OSError):
        save_state(tmp_path, HostState())
    assert os.listdir(tmp_path) == []


def test_a_state_of_before_the_numbers_is_loaded_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text(json.dumps({"version": 1, "soft": False, "epoch": 7, "latched": [A], "released": [A]}))
    assert load_state(path) == (HostState(soft=False, epoch=7, latched=(A,), released=(A,), settled=0, judged=None), "")
