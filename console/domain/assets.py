"""Where the files that travel with the product are: resources/ and envoy/, in a checkout and in an installed wheel."""

from __future__ import annotations

from pathlib import Path

import console


def asset_root() -> Path:
    """The folder that holds ``resources`` and ``envoy``."""
    package = Path(console.__file__).resolve().parent
    installed = package / "_assets"
    return installed if installed.is_dir() else package.parent


def resource(*parts: str) -> Path:
    """A file below resources/, for example ``resource("fonts", "Inter-Regular.otf")``."""
    return asset_root().joinpath("resources", *parts)


def envoy_asset(*parts: str) -> Path:
    """A file below envoy/."""
    return asset_root().joinpath("envoy", *parts)
