"""What doctor says of the sources: each looks once and says what it sees and stops."""

from __future__ import annotations

from pathlib import Path

from console.settings.options import Options
from console.settings.places import find_places
from console.supervisor import doctor


def test_each_source_says_what_it_sees_and_stops_and_where_it_looked(tmp_path: Path) -> None:
    (tmp_path / "home" / ".claude").mkdir(parents=True)
    (tmp_path / "home" / ".claude" / "sessions").write_text("no folder")
    places = find_places(str(tmp_path / "state"), create=True)
    assert places is not None
    said = doctor._sources(places, Options(discover_root=str(tmp_path / "home")))
    assert list(said) == ["source claude_code", "source codex", "source processes"]
    assert all("Sees: " in words and "Stops: " in words and "Not " in words for words in said.values())
    assert "Not a directory" in said["source claude_code"] and said["source codex"].startswith("available: 0 seen now.")
