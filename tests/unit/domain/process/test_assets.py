"""Files that travel with the product."""

from __future__ import annotations

from pathlib import Path

import pytest

import console
from console.domain.process import assets


def test_in_a_checkout_they_lie_beside_the_package() -> None:
    root = Path(console.__file__).resolve().parent.parent
    assert assets.asset_root() == root
    assert assets.resource("fonts") == root / "resources" / "fonts"
    assert assets.envoy_asset("x") == root / "envoy" / "x"
    assert assets.resource("fonts").is_dir()


def test_in_a_wheel_they_lie_inside_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "console" / "_assets").mkdir(parents=True)
    monkeypatch.setattr(console, "__file__", str(tmp_path / "console" / "__init__.py"))
    assert assets.asset_root() == tmp_path / "console" / "_assets"
