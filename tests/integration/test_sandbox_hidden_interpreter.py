"""Sandboxes whose own interpreter and library lie below a folder that the sandbox masks: pyenv, or an installation into a home folder."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.errors import ConsoleError
from console.sandbox import launcher
from console.sandbox.bubblewrap import Bubblewrap
from console.sandbox.interface import Sandbox
from console.sandbox.managed import Managed
from tests.fakes.sandbox_world import World, run

NOT_NEEDED = shutil.ignore_patterns("test", "tests", "site-packages", "dist-packages", "idlelib", "lib2to3", "ensurepip", "config-*")


@pytest.fixture
def world(state_dir: Path) -> Iterator[World]:
    made = World(state_dir)
    yield made
    made.close()


@pytest.fixture(scope="module")
def closed_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home folder that only its owner may enter, with an interpreter, its library and this package's sandbox files below it."""
    home = tmp_path_factory.mktemp("home")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (home / "py" / "bin").mkdir(parents=True)
    shutil.copy2(Path(sys.executable).resolve(), home / "py" / "bin" / "python3")
    library = Path(sys.base_prefix) / "lib" / version
    shutil.copytree(library, home / "py" / "lib" / version, ignore=NOT_NEEDED)
    shutil.copytree(launcher.SHIM.parent, home / "package", ignore=NOT_NEEDED)
    home.chmod(0o700)
    yield home
    shutil.rmtree(home)


@pytest.fixture
def from_home(closed_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The product as if it was installed below that home folder."""
    monkeypatch.setattr(sys, "executable", str(closed_home / "py" / "bin" / "python3"))
    monkeypatch.setattr(launcher, "SHIM", closed_home / "package" / "shim.py")
    monkeypatch.setattr(launcher, "LOOK", closed_home / "package" / "look.py")
    return closed_home


@pytest.mark.parametrize("kind", [Managed, Bubblewrap])
def test_an_agent_starts_when_the_interpreter_of_its_sandbox_is_masked(world: World, from_home: Path, kind: type[Sandbox]) -> None:
    if os.geteuid() != 0:
        pytest.skip("without root bubblewrap masks, and no Python of ours runs after it")
    spec = world.spec("masked", "sh", "-c", "echo started; exit 3", hide=(world.state, from_home))
    code, said, _ = run(kind(), spec, world.ticket("masked"))
    assert (code, said.strip()) == (3, "started")


@pytest.mark.parametrize("kind", [Managed, Bubblewrap])
def test_a_program_that_is_not_there_is_named_when_the_interpreter_is_masked(world: World, from_home: Path, kind: type[Sandbox]) -> None:
    if os.geteuid() != 0:
        pytest.skip("without root bubblewrap masks, and no Python of ours runs after it")
    spec = world.spec("absent", "/does/not/exist", hide=(world.state, from_home))
    try:
        code, said, _ = run(kind(), spec, world.ticket("absent"))
    except ConsoleError as error:
        code, said = 127, str(error)
    assert code == 127 and "/does/not/exist" in said


@pytest.mark.parametrize("kind", [Managed, Bubblewrap])
def test_a_program_in_a_closed_home_is_refused_before_the_start_with_the_folder(
    world: World, closed_home: Path, kind: type[Sandbox]
) -> None:
    if os.geteuid() != 0:
        pytest.skip("an ordinary user's agents run under that user's own account")
    program = closed_home / "py" / "bin" / "python3"
    for number, argv in enumerate(((str(program), "-V"), ("python3", "-V"), ("./link", "-V"), ("./script",))):
        spec = world.spec(f"closed-{number}", *argv, env={"PATH": f"{program.parent}:/nowhere"})
        (spec.workspace / "link").unlink(missing_ok=True)
        (spec.workspace / "link").symlink_to(program)
        (spec.workspace / "script").write_text(f"#!{program}\n")
        (spec.workspace / "script").chmod(0o755)
        with pytest.raises(ConsoleError, match="cannot be run") as refused:
            kind().prepare(spec, world.ticket(f"closed-{number}"))
        assert str(closed_home) in refused.value.what and "/usr/bin/python3" in refused.value.remedy


def test_a_program_that_is_bound_into_the_sandbox_or_found_later_in_path_is_started(world: World, closed_home: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("an ordinary user's agents run under that user's own account")
    path = {"PATH": f"{closed_home / 'py' / 'bin'}:/usr/bin:/bin"}
    assert run(Managed(), world.spec("later", "python3", "-V", env=path), world.ticket("later"))[0] == 0
    bound = closed_home / "bound"
    shutil.copy2("/bin/true", bound)
    spec = world.spec("bound", str(bound), extra_binds=((bound, str(bound)),))
    assert run(Managed(), spec, world.ticket("bound"))[0] == 0
