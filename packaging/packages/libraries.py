"""Debian packages that bring the shared libraries which our binaries need."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable

from packages.describe import CannotBuild

OF_LIBC = "libc6"
LOADER = re.compile(r"ld-linux.*|linux-vdso.*")


def packages_of(sonames: Iterable[str]) -> list[str]:
    """Names of packages, sorted; the C library with the version of this machine, which the binaries were copied from."""
    files = dict(re.findall(r"^\s(\S+) \(libc6.*=> (\S+)$", _said("/sbin/ldconfig", "-p"), re.MULTILINE))
    found: set[str] = set()
    for soname in sorted(sonames):
        if LOADER.fullmatch(soname):
            continue
        if soname not in files:
            raise CannotBuild(f"{soname} is needed and not on this machine: install the package that has it")
        found.add(_owner(files[soname]))
    version = _said("dpkg-query", "-W", "-f", "${Version}", OF_LIBC).split("-")[0]
    return sorted(f"{name} (>= {version})" if name == OF_LIBC else name for name in found)


def _owner(file: str) -> str:
    """Older systems record /lib, merged ones /usr/lib: both are asked for."""
    for name in (file, f"/usr{file}", file.removeprefix("/usr")):
        done = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.split(":")[0]
    raise CannotBuild(f"no Debian package brings {file}")


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
