"""Where systemd runs the guard, the supervisor waits for that one and starts none of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.domain.errors import Unavailable
from console.settings.options import Options
from console.settings.places import find_places
from console.supervisor import revive


def test_no_guard_is_started_beside_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = find_places(str(tmp_path / "state"), create=True)
    monkeypatch.setenv(revive.SERVICE_VARIABLE, "watchfloor-guard.service")
    monkeypatch.setattr(revive, "start_guard", lambda *_, **__: pytest.fail("a guard was started"))
    with pytest.raises(Unavailable, match="does not answer") as refused:
        revive.wait_for_service(places, "watchfloor-guard.service", timeout_s=0.2)
    assert "systemctl restart watchfloor-guard.service" in refused.value.remedy
    answers = iter([None, 4242])
    monkeypatch.setattr(revive, "guard_pid", lambda _: next(answers))
    assert revive.ensure_guard(places, Options()) == 4242
