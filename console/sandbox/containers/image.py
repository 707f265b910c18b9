"""The agent image for Docker: Python and a small shell, put together from the distribution's own packages; nothing is pulled.

Its tag is the hash of what goes in (recipe, packages by SHA-256, certificates), so that an image is built once per content.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import threading
from pathlib import Path

from docker import APIClient
from docker.errors import APIError, DockerException, ImageNotFound
from requests import RequestException

from console.domain.errors import ConsoleError, Unavailable

REPOSITORY = "watchfloor-agent"
RECIPE = "4"
"""Raised when the steps below change."""
LABEL = "io.watchfloor.recipe"
ROOTS = ("python3-minimal", "libpython3-stdlib", "busybox-static")
NOT_NEEDED = re.compile(
    r"^(perl|libperl|dpkg|tar$|install-info|mail|mime|media|gcc-|readline-common|debconf|libkrb|libgssapi|libk5crypto"
    r"|libkeyutils|libcom-err|libtirpc|libnsl|libgdbm|libdb|libpcre|libselinux|libacl|libmd0)"
)
SHELL_NAMES = (
    "sh ash cat chmod cp cut date dd df du echo env expr false find grep head hostname id kill ln ls mkdir mktemp mv nproc ps pwd"
    " rm rmdir sed seq setsid sleep sort stat tail tee test timeout touch tr true uname wc which xargs yes"
)
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_URI_LINE = re.compile(r"^'(?P<uri>[^']+)' (?P<file>[A-Za-z0-9.+~%_:-]+\.deb) \d+ (?P<hash>[A-Za-z0-9]+:[0-9a-f]+)$")
_NAME_LINE = re.compile(r"^[a-z0-9][a-z0-9+.-]+$")
# APT::Sandbox::User: apt's own account cannot write into the folder that we download to.
_APT = ("/usr/bin/apt-get", "-q", "-o", "APT::Sandbox::User=root")
_STEP_S = 300.0
_REMEDY = "Run apt-get update and try again, or launch with --sandbox bubblewrap."

_building = threading.Lock()
_known: dict[str, str] = {}
"""Engine's address: the tag it has, so that the package index is asked once per run and not once per launch."""


def ensure_image(engine: APIClient) -> str:
    """The digest (``sha256:...``) of the agent image: a tag could be moved to another content between two launches.

    Raises ConsoleError.
    """
    tag = ensure_tag(engine)
    try:
        return str(engine.inspect_image(tag)["Id"])  # type: ignore[no-untyped-call]
    except (DockerException, RequestException) as error:
        raise ConsoleError(f"The agent image cannot be looked up: {_words(error)}.", "Look at the engine's log.") from error


def ensure_tag(engine: APIClient) -> str:
    """The tag of the agent image, building it when this content is not there yet (seconds; needs the package archive).

    Where the packages cannot be asked for, an image built earlier serves. Raises ConsoleError.
    """
    with _building:
        known = _known.get(engine.base_url, "")
        if known and _has(engine, known):
            return known
        tag = _known[engine.base_url] = _find_or_build(engine)
        return tag


def _find_or_build(engine: APIClient) -> str:
    try:
        parts = package_hashes()
    except ConsoleError:
        if tag := _newest(engine):
            return tag
        raise
    tag = f"{REPOSITORY}:{content_tag(parts)}"
    if not _has(engine, tag):
        with tempfile.TemporaryDirectory(prefix="watchfloor-image-") as folder:
            _import(engine, build_archive(Path(folder), tuple(parts)), tag)
    return tag


def _has(engine: APIClient, tag: str) -> bool:
    try:
        engine.inspect_image(tag)  # type: ignore[no-untyped-call]
        return True
    except ImageNotFound:
        return False
    except (DockerException, RequestException) as error:
        raise ConsoleError(f"The agent image cannot be looked up: {_words(error)}.", "Look at the engine's log.") from error


def content_tag(parts: dict[str, str]) -> str:
    """Twelve hexadecimal characters over recipe, package hashes and certificates."""
    digest = hashlib.sha256(f"{RECIPE}\n{SHELL_NAMES}\n".encode())
    for file in sorted(parts):
        digest.update(f"{file} {parts[file]}\n".encode())
    if CERTIFICATES.is_file():
        digest.update(CERTIFICATES.read_bytes())
    return digest.hexdigest()[:12]


def package_hashes() -> dict[str, str]:
    """{package name: hash as the archive's signed index gives it} of everything that goes in. Raises Unavailable without apt."""
    if not Path(_APT[0]).exists():
        raise Unavailable("The agent image is built from Debian packages, and there is no apt here.", "Launch with --sandbox bubblewrap.")
    flags = [f"--no-{kind}" for kind in ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")]
    listed = _run(["/usr/bin/apt-cache", "depends", "--recurse", *flags, *ROOTS])
    names = [line for line in listed.splitlines() if _NAME_LINE.match(line) and not NOT_NEEDED.match(line)]
    found: dict[str, str] = {}
    for line in _run([*_APT, "download", "--print-uris", *sorted(set(names))]).splitlines():
        if match := _URI_LINE.match(line.strip()):
            found[match["file"].split("_", 1)[0]] = match["hash"]
    if not {"busybox-static", "python3-minimal"} <= set(found):
        raise Unavailable("The package index does not know Python and busybox.", _REMEDY)
    return found


def build_archive(folder: Path, packages: tuple[str, ...]) -> Path:
    """Downloads and unpacks the packages below ``folder`` (no maintainer script runs) and answers a tar of the root tree."""
    debs, root = folder / "debs", folder / "root"
    debs.mkdir()
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True)
    _run([*_APT, "download", *sorted(packages)], cwd=debs)
    for deb in sorted(debs.glob("*.deb")):
        # Unpacked and not installed: a package's maintainer scripts would run as root on this host.
        unpacked = folder / "one"
        _run(["/usr/bin/dpkg-deb", "-x", str(deb), str(unpacked)])
        _merge(unpacked, root)
        shutil.rmtree(unpacked)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    _furnish(root)
    archive = folder / "root.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(root, arcname=".", filter=_as_root)
    return archive


def _merge(unpacked: Path, root: Path) -> None:
    """Copies one package's tree, with /bin, /lib and so on below /usr as every current distribution has them."""
    for name in ("bin", "sbin", "lib", "lib64"):
        if (unpacked / name).is_dir():
            shutil.copytree(unpacked / name, unpacked / "usr" / name, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(unpacked / name)
    for name in ("doc", "man", "lintian", "locale", "doc-base"):
        shutil.rmtree(unpacked / "usr" / "share" / name, ignore_errors=True)
    shutil.copytree(unpacked, root, symlinks=True, dirs_exist_ok=True)


def _furnish(root: Path) -> None:
    for path in root.glob("usr/lib/python3*"):
        for name in ("idlelib", "ensurepip", "lib2to3", "test", "tkinter", "turtledemo"):
            shutil.rmtree(path / name, ignore_errors=True)
    for name in SHELL_NAMES.split():
        place = root / "usr" / "bin" / name
        if not place.exists():
            place.symlink_to("busybox")
    for name in ("etc/ssl/certs", "tmp", "proc", "sys", "dev", "run", ".watchfloor"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "etc" / "passwd").write_text("root:x:0:0:root:/:/bin/false\nagent:x:65534:65534:agent:/:/bin/sh\n")
    (root / "etc" / "group").write_text("root:x:0:\nagent:x:65534:\n")
    if CERTIFICATES.is_file():
        shutil.copyfile(CERTIFICATES, root / CERTIFICATES.relative_to("/"))


def _as_root(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    # The same content gives the same layer, wherever and whenever it is built.
    info.mtime = 0
    # Nobody's set-uid program, nothing writable by others; a tmpfs takes its mode from the folder it is mounted on.
    info.mode = 0o1777 if info.name == "./tmp" else info.mode & 0o755
    return info


def _import(engine: APIClient, archive: Path, tag: str) -> None:
    name, _, version = tag.partition(":")
    try:
        engine.import_image_from_file(str(archive), repository=name, tag=version, changes=[f"LABEL {LABEL}={RECIPE}"])
        engine.inspect_image(tag)  # type: ignore[no-untyped-call]
    except (DockerException, RequestException, OSError) as error:
        raise ConsoleError(f"The Docker engine did not take the agent image: {_words(error)}.", "Look at the engine's log.") from error


def _newest(engine: APIClient) -> str:
    try:
        images = engine.images(filters={"label": f"{LABEL}={RECIPE}"})
    except (APIError, DockerException, RequestException):
        return ""
    tags = [(image["Created"], tag) for image in images for tag in image["RepoTags"] or () if tag.startswith(f"{REPOSITORY}:")]
    return max(tags)[1] if tags else ""


def _run(command: list[str], cwd: Path | None = None) -> str:
    try:
        result = subprocess.run(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_STEP_S,
            check=False,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"The agent image cannot be built: {_words(error)}.", _REMEDY) from error
    if result.returncode:
        raise Unavailable(f"The agent image cannot be built: {Path(command[0]).name}: {result.stderr.strip()[-300:]}", _REMEDY)
    return result.stdout


def _words(error: Exception) -> str:
    return str(getattr(error, "explanation", "") or error)[:300]
