"""What brings the shared libraries that our binaries need: packages of Debian and Arch, and names of libraries for rpm."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable

from packages.describe import CannotBuild

OF_LIBC = "libc6"
LOADER = re.compile(r"ld-linux.*|linux-vdso.*")
ARCH = {
    "glibc": "c m dl pthread rt resolv",
    "gcc-libs": "gcc_s stdc++",
    "openssl": "crypto ssl",
    "expat": "expat",
    "libffi": "ffi",
    "xz": "lzma",
    "sqlite": "sqlite3",
    "util-linux-libs": "uuid",
    "zlib": "z",
    "zstd": "zstd",
    "krb5": "gssapi_krb5",
    "dbus": "dbus-1",
    "glib2": "glib-2.0 gthread-2.0",
    "brotli": "brotlicommon brotlidec",
    "fontconfig": "fontconfig",
    "freetype2": "freetype",
    "libglvnd": "EGL GL",
    "libx11": "X11 X11-xcb",
    "libxcb": "xcb xcb-glx xcb-randr xcb-render xcb-shape xcb-shm xcb-sync xcb-xfixes xcb-xkb",
    "libxkbcommon": "xkbcommon",
    "libxkbcommon-x11": "xkbcommon-x11",
    "wayland": "wayland-client wayland-cursor wayland-egl",
    "xcb-util": "xcb-util",
    "xcb-util-cursor": "xcb-cursor",
    "xcb-util-image": "xcb-image",
    "xcb-util-keysyms": "xcb-keysyms",
    "xcb-util-renderutil": "xcb-render-util",
    "xcb-util-wm": "xcb-icccm",
}
"""Packages of Arch by the libraries that they bring, without ``lib`` and ``.so``."""


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
    return sorted(f"{name} (>= {_libc()})" if name == OF_LIBC else name for name in found)


def sonames_of(sonames: Iterable[str]) -> list[str]:
    """The libraries themselves, as rpm asks for them; the C library with the version of this machine."""
    found = sorted(f"{name}()(64bit)" for name in sonames if not LOADER.fullmatch(name))
    return [f"libc.so.6(GLIBC_{_libc()})(64bit)" if name.startswith("libc.so.6") else name for name in found]


def arch_packages_of(sonames: Iterable[str]) -> list[str]:
    """Names of Arch's packages, sorted. CannotBuild for a library that no line of ``ARCH`` has."""
    by_library = {library: package for package, libraries in ARCH.items() for library in libraries.split()}
    found: set[str] = set()
    for soname in sorted(sonames):
        if LOADER.fullmatch(soname):
            continue
        library = soname.partition(".so")[0].removeprefix("lib")
        if library not in by_library:
            raise CannotBuild(f"{soname} is needed and packaging/packages/libraries.py names no package of Arch that has it")
        found.add(by_library[library])
    return sorted(f"{name}>={_libc()}" if name == "glibc" else name for name in found)


def _libc() -> str:
    return _said("dpkg-query", "-W", "-f", "${Version}", OF_LIBC).split("-")[0]


def _owner(file: str) -> str:
    """Older systems record /lib, merged ones /usr/lib: both are asked for."""
    for name in (file, f"/usr{file}", file.removeprefix("/usr")):
        done = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.split(":")[0]
    raise CannotBuild(f"no Debian package brings {file}")


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
