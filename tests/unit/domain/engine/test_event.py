"""Events and commands are immutable values."""

from __future__ import annotations

import dataclasses

import pytest

from console.domain.engine import command, event


def _values(module: object, base: type) -> list[type]:
    return [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, base)]


@pytest.mark.parametrize("kind", _values(event, event.Event))
def test_an_event_is_frozen_and_says_what_happened(kind: type) -> None:
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert kind.__doc__


@pytest.mark.parametrize("kind", _values(command, command.Command))
def test_a_command_is_frozen_and_says_what_to_do(kind: type) -> None:
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert kind.__doc__
