"""Instances that stand while many sentences are said to them, and how nobody of one sentence is left for the next."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from console.api.ladder import ScopeBody
from console.domain.errors import Conflict, NotFound
from tests.fakes.instance import Instance, until


@contextlib.contextmanager
def short_folder() -> Iterator[Path]:
    """One with a short name, since sockets lie in it, that agents under another uid can pass through."""
    with tempfile.TemporaryDirectory() as name:  # it goes also when what is done in it fails
        folder = Path(name)
        folder.chmod(0o711)
        yield folder


@contextlib.contextmanager
def standing_instance(*options: str, prepare: Callable[[Path], object] = lambda _folder: None, envoy: bool = False) -> Iterator[Instance]:
    """One in a folder of its own, which ``prepare`` furnishes first. ``envoy``: once Envoy is healthy."""
    with short_folder() as folder:
        prepare(folder)
        with Instance(folder, *options, envoy=envoy) as instance:
            if envoy:
                until_envoy_is_healthy(instance)
            yield instance


def until_envoy_is_healthy(it: Instance) -> None:
    until(lambda: it.api.allowlist().envoy == "healthy", words="Envoy is healthy")


def end_all(it: Instance) -> None:
    """Kills whoever lives, and waits until nothing is left of anybody."""
    with contextlib.suppress(NotFound, Conflict):
        it.api.kill_scope(ScopeBody(reach="host"), "end of the sentence")
    until(lambda: not [agent for agent in it.api.fleet().agents if agent.ended_at is None], words="nobody lives")
    until(lambda: not list(it.places.agents_dir.iterdir()), words="nothing is left of anybody")
