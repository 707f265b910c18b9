"""What was noted of an image when it was built: whole, by the recipe that is here, or nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from console.egress.envoy.container import FILE, Built, note, noted, recipe

BUILT = Built("sha256:" + "1" * 64, ("sha256:" + "2" * 64,), "3" * 64, recipe())


def test_what_was_built_is_found_again_and_is_nobody_elses_to_read(tmp_path: Path) -> None:
    assert noted(tmp_path) == (None, f"no image was built for this instance (there is no {FILE} in {tmp_path})")
    note(tmp_path / "new", BUILT)
    assert noted(tmp_path / "new") == (BUILT, "")
    assert (tmp_path / "new" / FILE).stat().st_mode & 0o077 == 0


def test_another_recipe_counts_for_nothing(tmp_path: Path) -> None:
    note(tmp_path, replace(BUILT, recipe="0" * 64))
    assert noted(tmp_path) == (None, "its image was built by another recipe than the one that is here")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"image": 1}', '{"image":"a","layers":[],"envoy":"b","recipe":"c"}', "\\xff"])
def test_a_damaged_note_counts_for_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    assert noted(tmp_path)[0] is None and "cannot be read" in noted(tmp_path)[1]
