"""Sentences about where an instance lies: however its folder is named, it is one place."""

from __future__ import annotations

from pathlib import Path

from console.settings.places import find_places
from tests.fakes.instance import Instance


def test_agents_run_in_an_instance_that_is_named_by_a_link_and_its_own_name_finds_the_same(state_dir: Path) -> None:
    real, link = state_dir / "real", state_dir / "link"
    real.mkdir(mode=0o711)
    link.symlink_to(real)
    with Instance(link) as it:
        for sandbox in ("none", "bubblewrap"):
            agent = it.python("print('at', os.environ['WATCHFLOOR_WORKSPACE'], flush=True); time.sleep(600)", sandbox=sandbox)
            assert f"at {real}/" in it.says(agent, "at ")
        assert find_places(str(real), create=False) == it.places
