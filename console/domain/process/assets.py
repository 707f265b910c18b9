"""Where the files that travel with the product are: resources/, envoy/ and docs/, in a checkout and in an installed wheel."""

from __future__ import annotations

from pathlib import Path

import console


def asset_root() -> Path:
    """The folder that holds ``resources``, ``envoy`` and ``docs``."""
    package = Path(console.__file__).resolve().parent
    installed = package / "_assets"
    return installed if installed.is_dir() else package.parent


def resource(*parts: str) -> Path:
    """A file below resources/, for example ``resource("fonts", "Inter-Regular.otf")``."""
    return asset_root().joinpath("resources", *parts)


def envoy_asset(*parts: str) -> Path:
    """A file below envoy/."""
    return asset_root().joinpath("envoy", *parts)


KINDS = ("tutorial", "how-to", "reference", "explanation")
"""Kinds of documents for readers; each is a folder below docs/."""


def documents() -> dict[str, Path]:
    """Every page for readers by its name, such as ``how-to/budgets.md``, tutorials first."""
    folder = asset_root() / "docs"
    return {f"{kind}/{file.name}": file for kind in KINDS for file in sorted((folder / kind).glob("*.md"))}
