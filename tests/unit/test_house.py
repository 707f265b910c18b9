"""The house keeps its own rules: style, types, who may import whom, and that tests mirror modules."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from console.domain.process.assets import KINDS
from tests.unit.class_sizes import LARGER, LINES, METHODS

ROOT = Path(__file__).resolve().parents[2]
MIRRORED = (
    "domain",
    "domain/calls",
    "domain/engine",
    "domain/process",
    "policy",
    "policy/files",
    "policy/review",
    "policy/rules",
    "policy/sequences",
    "policy/shell",
    "enforcement",
    "killswitch",
    "killswitch/client",
    "killswitch/guard",
    "killswitch/helpers",
    "killswitch/kernel",
    "killswitch/kill",
    "killswitch/store",
    "audit",
)
BIN = Path(sys.executable).parent


def run(*argv: str) -> None:
    done = subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(argv)}\n{done.stdout[-8000:]}"


def test_ruff_finds_nothing() -> None:
    run(str(BIN / "ruff"), "check", "--no-cache", "console", "tests")


def test_ruff_would_format_nothing() -> None:
    run(str(BIN / "ruff"), "format", "--check", "--no-cache", "console", "tests")


@pytest.mark.timeout(600)
def test_mypy_is_strict_and_content() -> None:
    run(str(BIN / "mypy"), "--cache-dir", os.devnull, "console", "tests")  # a cache that nobody reads takes a sixth of its time


def test_rooms_import_only_what_they_may() -> None:
    run(str(BIN / "lint-imports"), "--no-cache")


@pytest.mark.parametrize("room", MIRRORED)
def test_tests_mirror_modules(room: str) -> None:
    modules = {p.stem for p in (ROOT / "console" / room).glob("*.py") if p.stem not in ("__init__", "__main__")}
    tests = {p.stem.removeprefix("test_") for p in (ROOT / "tests" / "unit" / room).glob("test_*.py")}
    first = room.partition("/")[0]
    # What only a real kernel can show has its mirror among the integration tests.
    tests |= {p.stem.removeprefix(f"test_{first}_") for p in (ROOT / "tests" / "integration").glob(f"test_{first}_*.py")}
    missing = sorted(modules - tests)
    assert not missing, f"console/{room}: no tests/unit/{room}/test_MODULE.py for {', '.join(missing)}"


LONGEST_MODULE = 600
"""Lines, for one thing that a person would open by itself; the median is far below."""


def test_modules_stay_short_enough_to_read() -> None:
    lengths = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in (ROOT / "console").rglob("*.py")}
    long = {name: n for name, n in lengths.items() if n > LONGEST_MODULE}
    assert not long, f"more than {LONGEST_MODULE} lines: {long}"


def test_classes_stay_small_enough_to_hold_in_mind() -> None:
    sizes = {f"{p.relative_to(ROOT / 'console').as_posix()[:-3]}:{name}": size for p, name, size in _classes()}
    limits = {name: (lines, methods) for name, (lines, methods, _why) in LARGER.items()}
    large = {
        name: f"{lines} lines, {methods} methods"
        for name, (lines, methods) in sizes.items()
        if lines > limits.get(name, (LINES, METHODS))[0] or methods > limits.get(name, (LINES, METHODS))[1]
    }
    assert not large, f"more than {LINES} lines or {METHODS} methods, or more than tests/unit/class_sizes.py allows it: {large}"
    small = [name for name in limits if name not in sizes or (sizes[name][0] <= LINES and sizes[name][1] <= METHODS)]
    assert not small, f"small again, or gone: take them out of tests/unit/class_sizes.py: {small}"
    loose = [
        name
        for name, (lines, methods) in limits.items()
        if lines > max(LINES, sizes[name][0] + 30) or methods > max(METHODS, sizes[name][1] + 3)
    ]
    assert not loose, f"smaller than tests/unit/class_sizes.py says by far: its numbers only become smaller: {loose}"


def _classes() -> Iterator[tuple[Path, str, tuple[int, int]]]:
    """Module, name, (lines, methods) of every class of the product; overloads of one method are one."""
    for file, node in _classes_and_calls():
        if isinstance(node, ast.ClassDef):
            methods = {one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
            yield file, node.name, ((node.end_lineno or node.lineno) - node.lineno + 1, len(methods))


_STARTS = {"run", "Popen", "call", "check_call", "check_output", "create_subprocess_exec", "execv", "execve", "execvp", "execvpe"}


@cache
def _classes_and_calls() -> list[tuple[Path, ast.ClassDef | ast.Call]]:
    """Every class of the product, and every call that may start a program: to read all files takes seconds, so it is done once."""
    return [
        (file, node)
        for file in (ROOT / "console").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef)
        or (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _STARTS)
    ]


def test_nothing_can_be_added_to_a_service_after_it_was_made() -> None:
    """A service is frozen or has slots; what another library made it from (a collector, a response) is its own matter."""
    open_ones = []
    for file in (ROOT / "console" / "services").rglob("*.py"):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.bases:
                named = {t.id for one in node.body if isinstance(one, ast.Assign) for t in one.targets if isinstance(t, ast.Name)}
                said = " ".join(ast.unparse(one) for one in node.decorator_list)
                if "__slots__" not in named and "slots=True" not in said:
                    open_ones.append(f"{file.relative_to(ROOT)}:{node.name}")
    assert not open_ones, f"neither frozen nor with slots: {open_ones}"


def test_every_module_says_what_it_is_for() -> None:
    silent = [str(p.relative_to(ROOT)) for p in (ROOT / "console").rglob("*.py") if not p.read_text().lstrip().startswith('"""')]
    assert not silent, f"no module docstring: {silent}"


def test_no_drawer_is_called_utils() -> None:
    drawers = {p for p in (ROOT / "console").rglob("*") if p.stem in ("utils", "helpers", "common", "misc")}
    # These are programs: a helper is what the guard starts for one request (docs/decisions/0014-guard-helpers.md).
    assert drawers == {ROOT / "console" / "killswitch" / "helpers"}


def test_nothing_of_ours_runs_git_where_agents_write() -> None:
    """B2: git runs what a repository's own settings name (core.fsmonitor, hooks); so nothing here ever starts git."""
    found = []
    for file, node in _classes_and_calls():
        if isinstance(node, ast.Call):
            words = [x.value for arg in node.args for x in ast.walk(arg) if isinstance(x, ast.Constant) and isinstance(x.value, str)]
            found += [f"{file.relative_to(ROOT)}:{node.lineno}" for word in words if word.rsplit("/", 1)[-1] == "git"]
    assert not found


def test_no_window_of_ours_opens_a_link_or_reads_markup() -> None:
    """G1, G4: what an agent wrote is text: no address in it is followed, no picture loaded, and nothing here could."""
    never = r"\b(openUrl|QDesktopServices|setOpenExternalLinks|setOpenLinks|linkActivated|LinksAccessible\w*|QTextBrowser"
    never += r"|TextBrowserInteraction|QWebEngine\w*|RichText|AutoText|setHtml|insertHtml|setMarkdown)\b"
    found = [f"{f.relative_to(ROOT)}: {m[0]}" for f in (ROOT / "console" / "gui").rglob("*.py") for m in re.finditer(never, f.read_text())]
    assert not found


def test_folders_of_these_names_never_become_packages() -> None:
    assert not (ROOT / "envoy" / "__init__.py").exists()
    assert not (ROOT / "packaging" / "__init__.py").exists()


def test_what_the_product_reads_travels_in_the_wheel(tmp_path: Path) -> None:
    run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path))
    [wheel] = tmp_path.glob("watchfloor-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    documents = [(f"docs/{kind}", f"console/_assets/docs/{kind}") for kind in KINDS]
    for folder, inside in (
        ("resources", "console/_assets/resources"),
        ("envoy", "console/_assets/envoy"),
        ("console", "console"),
        *documents,
    ):
        known = subprocess.run(["git", "ls-files", "-z", folder], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        wanted = {inside + name.removeprefix(folder) for name in known.split("\0") if name}
        assert wanted and wanted <= names, f"not in the wheel: {sorted(wanted - names)}"
    assert not any(name.startswith(("tests/", "packaging/")) for name in names)
    scripts = next(n for n in names if n.endswith("entry_points.txt"))
    assert "watchfloor = console.__main__:main" in zipfile.ZipFile(wheel).read(scripts).decode()


def test_requirements_are_pinned_by_hash_and_name_no_index() -> None:
    for name in ("runtime", "demo", "test", "build"):
        text = (ROOT / "requirements" / f"{name}.txt").read_text()
        assert "--hash=sha256:" in text and "index-url" not in text and "find-links" not in text and "://" not in text
        pinned = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
        assert pinned and all("==" in line for line in pinned)
        entries = re.split(r"\n(?=\S)", "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#")).strip())
        bare = [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry]
        assert not bare, f"{name}: without a hash of their own: {bare}"
    installs = re.findall(r"^\s*pip_install (.*)$", (ROOT / "packaging" / "prepare.sh").read_text(), re.MULTILINE)
    assert installs and all("--require-hashes" in line or "--no-deps" in line for line in installs), installs
