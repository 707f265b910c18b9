"""Which Envoy image of an engine is ours: the one that was built for this instance, by this recipe, with this content.

A label is anybody's to write, and the newest image is whoever's was pushed last. What counts is what was noted when it was built, in the
state directory, where no agent writes: the recipe's hash, the program's, and the digests of the layers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from console.domain.assets import envoy_asset
from console.settings.durable import make_folder, replace_file

FILE = "envoy-image.json"
_MOST = 65536


@dataclass(frozen=True, slots=True)
class Built:
    """What was noted of it."""

    image: str
    """The engine's id (``sha256:...``), which no tag can move."""
    layers: tuple[str, ...]
    """SHA-256 of each layer's content, as the engine says them (RootFS)."""
    envoy: str
    """SHA-256 of the program in it."""
    recipe: str
    """SHA-256 of the recipe that built it."""


def recipe() -> str:
    """The SHA-256 of ``envoy/build_image.py`` as it is here. Raises OSError."""
    return hashlib.sha256(envoy_asset("build_image.py").read_bytes()).hexdigest()


def note(state_dir: Path, built: Built) -> None:
    """Keeps it, durably. Raises OSError."""
    make_folder(state_dir, 0o711)
    replace_file(state_dir / FILE, json.dumps({"schema_version": 1, **asdict(built)}).encode())


def noted(state_dir: Path) -> tuple[Built | None, str]:
    """(what was built for this instance by the recipe that is here, "") or (None, why there is nothing to trust)."""
    try:
        with (state_dir / FILE).open("rb") as file:
            data = json.loads(file.read(_MOST))
        built = Built(str(data["image"]), _texts(data["layers"]), str(data["envoy"]), str(data["recipe"]))
        if built.recipe != recipe():
            return None, "its image was built by another recipe than the one that is here"
    except FileNotFoundError:
        return None, f"no image was built for this instance (there is no {FILE} in {state_dir})"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return None, f"{state_dir / FILE} cannot be read: {error}"
    return built, ""


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise ValueError("layers")
    return tuple(str(one) for one in value)
