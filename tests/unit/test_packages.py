"""What the packages are made of, looked at without building them: the guard's modules, units, scripts, metadata, descriptions."""

from __future__ import annotations

import configparser
import importlib.util
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from console.cli import windows
from console.domain.errors import Unavailable
from console.settings.admin_files import read_file
from console.settings.layers import check_file

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "packaging" / "packages"
UNITS = sorted(HERE.glob("files/*/usr/lib/systemd/system/*.service"))


def part(name: str) -> ModuleType:
    """A module of ``packaging/packages``: that folder is no package of the product's."""
    for one in ("packages", f"packages.{name}"):
        if one not in sys.modules:
            file = HERE / ("__init__.py" if one == "packages" else f"{name}.py")
            spec = importlib.util.spec_from_file_location(one, file, submodule_search_locations=[str(HERE)] if one == "packages" else None)
            assert spec is not None and spec.loader is not None
            sys.modules[one] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(sys.modules[one])
    return sys.modules[f"packages.{name}"]


def test_the_guard_starts_from_its_own_modules_and_the_standard_library(tmp_path: Path) -> None:
    modules, foreign = part("closure").closure(ROOT, *part("stage").GUARD_ENTRIES)
    assert not foreign
    assert not [name for name in modules if name.split(".")[1:2] not in ([], ["domain"], ["killswitch"])]
    for file in modules.values():
        place = tmp_path / file.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.read_bytes())
    start = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from console.killswitch.__main__ import main; main(['--help'])"
    done = subprocess.run([sys.executable, "-I", "-S", "-B", "-c", start], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "--instance" in done.stdout, done.stderr
    names = {file.stem for file in (ROOT / "console" / "killswitch" / "helpers").glob("*.py")}
    helpers = [name for name in names if "def main()" in (ROOT / "console" / "killswitch" / "helpers" / f"{name}.py").read_text()]
    for name in helpers:  # the guard starts them by name
        imported = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import console.killswitch.helpers.{name}"
        subprocess.run([sys.executable, "-I", "-S", "-B", "-c", imported], check=True)


def test_an_import_of_another_package_is_found(tmp_path: Path) -> None:
    (tmp_path / "console").mkdir()
    (tmp_path / "console" / "__init__.py").write_text("")
    (tmp_path / "console" / "a.py").write_text("def f():\n    from console import b\n")
    (tmp_path / "console" / "b.py").write_text("import os, pydantic\n")
    modules, foreign = part("closure").closure(tmp_path, "console.a")
    assert set(modules) == {"console", "console.a", "console.b"} and foreign == {"pydantic"}


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_units_are_watched_delegated_and_spared(unit: Path) -> None:
    read = configparser.ConfigParser(strict=False, interpolation=None)
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read_string(unit.read_text())
    service = dict(read["Service"])
    assert (service["Type"], service["Delegate"], service["KillMode"]) == ("notify", "yes", "process")
    assert int(service["WatchdogSec"]) > 0 and int(service["OOMScoreAdjust"]) < 0 and service["Restart"] != "no"
    program = service["ExecStart"].split()[0]
    assert [tree for tree in HERE.glob("files/*") if (tree / program[1:]).is_file()], f"no package brings {program}"


def test_each_socket_starts_its_service_and_is_enabled_and_stopped_with_it() -> None:
    sockets = sorted(HERE.glob("files/*/usr/lib/systemd/system/*.socket"))
    listened = {line.removeprefix("ListenStream=") for one in sockets for line in one.read_text().splitlines() if "ListenStream" in line}
    assert listened == {f"/var/lib/watchfloor/run/{name}.sock" for name in ("operator", "hooks")} | {
        f"/run/watchfloor/{name}.sock" for name in ("operator", "guard")
    }
    for one in sockets:
        package = one.parents[4].name
        service = (one.parent / f"{package}.service").read_text()
        for key in ("Sockets", "Also"):
            [names] = [line for line in service.splitlines() if line.startswith(f"{key}=")]
            assert one.name in names.partition("=")[2].split(), f"{key} of {package}.service"
        assert one.name in (HERE / "scripts" / f"{package}.prerm").read_text(), "it would start the service again during a removal"
        is_members = "/run/watchfloor/" in one.read_text().replace("/lib/watchfloor/run/", "")
        assert f"SocketMode={'0666' if is_members else '0600'}" in one.read_text().splitlines()


def test_nothing_of_a_unit_binds_the_agents_in_the_cgroups_below_it() -> None:
    """IPAddressDeny of the guard's unit took the network from every agent of the host's instance."""
    bounds = re.compile(
        r"^(IPAddress|IPIngress|IPEgress|Memory(Max|High|Swap)|CPUQuota|AllowedCPUs|IO\w+Max|SocketBind|RestrictNetworkInterfaces)"
    )
    for unit in UNITS:
        lines = unit.read_text().splitlines()
        assert not [line for line in lines if bounds.match(line)], unit
    [guard] = [unit for unit in UNITS if unit.name == "watchfloor-guard.service"]
    assert "TasksMax=infinity" in guard.read_text().splitlines(), "15 % of the host's tasks would be the bound of all agents together"


def test_scripts_are_shell_that_reads() -> None:
    scripts = sorted((HERE / "scripts").iterdir())
    names = {package.name for package in part("describe").PACKAGES}
    assert {s.name.split(".")[0] for s in scripts} <= names and {s.suffix for s in scripts} <= {".postinst", ".prerm", ".postrm"}
    for script in scripts:
        subprocess.run(["sh", "-n", str(script)], check=True)


def purge(tmp_path: Path, script: str) -> subprocess.CompletedProcess[str]:
    """The purge of a state directory below ``tmp_path``."""
    text = script.replace("/var/lib/watchfloor", str(tmp_path / "state")).replace("/etc/watchfloor", str(tmp_path / "etc"))
    text = text.replace("/sys/fs/cgroup", str(tmp_path / "cgroup")).replace("getent passwd watchfloor-guard", "false")
    assert "getent" not in text
    return subprocess.run(["sh", "-s", "purge"], input=text, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("evidence", ["latched", "no latch", "held"])
def test_a_purge_refuses_evidence_and_names_what_overrides(tmp_path: Path, evidence: str) -> None:
    script = (HERE / "scripts" / "watchfloor-guard.postrm").read_text()
    state = tmp_path / "state"
    (state / "guard").mkdir(parents=True)
    (state / "workspaces" / ".locks").mkdir(parents=True)
    if evidence != "no latch":
        (state / "guard" / "latch.json").write_text(json.dumps({"body": {"latched": evidence == "latched"}}, indent=1))
    (state / "workspaces" / ".locks" / "c-1").write_text("killed by K-1" if evidence == "held" else "")
    refused = purge(tmp_path, script)
    assert refused.returncode == 1 and f"touch {state}/purge-anyway" in refused.stderr and (state / "guard").is_dir()
    (state / "purge-anyway").touch()
    assert purge(tmp_path, script).returncode == 0 and not state.exists()


def test_a_purge_deletes_a_quiet_instance_and_nothing_beside_it(tmp_path: Path) -> None:
    script = (HERE / "scripts" / "watchfloor-guard.postrm").read_text()
    (tmp_path / "state" / "guard").mkdir(parents=True)
    (tmp_path / "state" / "guard" / "latch.json").write_text('{\n "body": {\n  "latched": false\n }\n}')
    (tmp_path / "state" / "instance.json").write_text('{"instance_id": "0a1b2c3d", "created_at": 1.5}')
    (tmp_path / "etc").mkdir()
    own, other = tmp_path / "cgroup" / "watchfloor-0a1b2c3d" / "agents", tmp_path / "cgroup" / "watchfloor-99999999"
    own.mkdir(parents=True)
    other.mkdir()
    done = purge(tmp_path, script)
    assert done.returncode == 0, done.stderr
    assert sorted(f.name for f in tmp_path.iterdir()) == ["cgroup"] and [f.name for f in (tmp_path / "cgroup").iterdir()] == [other.name]


def test_desktop_entries_and_metadata_name_what_is_installed() -> None:
    share = HERE / "files" / "watchfloor-console" / "usr" / "share"
    [metadata] = (share / "metainfo").iterdir()
    component = ET.parse(metadata).getroot()
    assert metadata.name == f"{component.findtext('id')}.metainfo.xml"
    assert (share / "applications" / str(component.findtext("launchable"))).is_file()
    for entry in (share / "applications").iterdir():
        read = configparser.ConfigParser(interpolation=None)
        read.read_string(entry.read_text())
        assert read["Desktop Entry"]["Exec"].split()[0] == "watchfloor"
        assert (share / "icons/hicolor/scalable/apps" / f"{read['Desktop Entry']['Icon']}.svg").is_file()


def described(tree: Path, kind: str, needed: list[str], package: int = 1) -> dict[str, Any]:
    """What nfpm reads of one of the three packages."""
    form = part("nfpm").Form(kind, tree.parent)
    told: dict[str, Any] = part("nfpm").description(ROOT, part("describe").PACKAGES[package], tree, needed, "1.2.3", form)
    return told


@pytest.mark.parametrize(
    ("kind", "python", "guard", "library"),
    [
        ("rpm", "python3 >= 3.11", "watchfloor-guard = 1.2.3", "libz.so.1()(64bit)"),
        ("archlinux", "python>=3.11", "watchfloor-guard=1.2.3", "zlib"),
    ],
)
def test_other_formats_name_what_they_need_in_their_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, python: str, guard: str, library: str
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795000000")
    tree = tmp_path / "tree"
    (tree / "usr/share/lintian/overrides").mkdir(parents=True)
    (tree / "usr/share/lintian/overrides/watchfloor").write_text("")
    assert python in described(tree, kind, [], package=0)["depends"]
    needed = part("formats").needed(kind, {"libz.so.1", "libstdc++.so.6", "ld-linux-x86-64.so.2"})
    told = described(tree, kind, needed)
    assert {guard, library} <= set(told["depends"]) and not [d for d in told["depends"] if "ld-linux" in d or " (" in d]
    assert told["contents"] == [], "what only Debian reads stays out"
    assert told["archlinux"]["scripts"]["postupgrade"] == told["scripts"]["postinstall"]
    assert told["rpm"]["buildhost"] == "localhost", "two machines build the same"
    with pytest.raises(part("describe").CannotBuild, match="no package of Arch"):
        part("formats").needed("archlinux", {"libnew.so.1"})


@pytest.mark.parametrize(
    ("kind", "script", "word", "step"),
    [
        ("rpm", "postinstall", "1", "configure"),
        ("rpm", "preremove", "0", "remove"),
        ("rpm", "preremove", "1", "upgrade"),
        ("rpm", "postremove", "0", "remove"),
        ("archlinux", "postinstall", "1.2.3-1", "configure"),
        ("archlinux", "preremove", "1.2.3-1", "remove"),
    ],
)
def test_a_script_of_another_format_is_told_what_dpkg_would_say(tmp_path: Path, kind: str, script: str, word: str, step: str) -> None:
    suffix = part("describe").SCRIPTS[script]
    written = tmp_path / f"watchfloor.{suffix}"
    written.write_text('#!/bin/sh\necho "told $1"\n')
    made = part("formats").scripts(kind, {script: written}, tmp_path)
    done = subprocess.run(["sh", made[script], word], capture_output=True, text=True, check=True)
    assert done.stdout == f"told {step}\n"


def test_a_package_is_described_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795000000")
    (tmp_path / "opt/watchfloor/bin").mkdir(parents=True)
    (tmp_path / "opt/watchfloor/bin/python3.11").write_text("")
    (tmp_path / "opt/watchfloor/bin/python3.11").chmod(0o700)
    (tmp_path / "opt/watchfloor/bin/python3").symlink_to("python3.11")
    told = described(tmp_path, "deb", ["libc6 (>= 2.36)", "procps"])
    assert told["depends"].count("procps") == 1 and {"watchfloor-guard (= 1.2.3)", "libc6 (>= 2.36)"} <= set(told["depends"])
    assert told["mtime"] == "2026-11-18T13:46:40Z" or told["mtime"].startswith("2026-11-")
    kinds = {one["dst"]: one.get("type", "file") for one in told["contents"]}
    assert kinds["/opt/watchfloor/bin/python3"] == "symlink" and kinds["/opt/watchfloor"] == "dir"
    [program] = [one for one in told["contents"] if one["dst"] == "/opt/watchfloor/bin/python3.11"]
    assert program["file_info"]["mode"] == 0o755
    assert set(told["scripts"]) == {"postinstall", "preremove", "postremove"}


def test_the_settings_of_the_administrator_are_shipped_as_a_conffile_that_changes_nothing() -> None:
    tree = HERE / "files" / "watchfloor"
    shipped = tree / "etc" / "watchfloor"
    told = {one["dst"]: one for one in part("nfpm").contents(tree)}
    main, folder = told["/etc/watchfloor/watchfloor.toml"], told["/etc/watchfloor/conf.d"]
    assert main["type"] == "config|noreplace" and main["file_info"]["mode"] == 0o644
    assert folder["type"] == "dir" and folder["file_info"]["mode"] == 0o755
    assert check_file(shipped / "watchfloor.toml") == [] and read_file(shipped / "watchfloor.toml", of_root=False).data == {}
    assert [path.name for path in (shipped / "conf.d").iterdir()] == ["README"], "nothing that is read"


def test_every_example_in_the_shipped_settings_is_a_good_one(tmp_path: Path) -> None:
    text = (HERE / "files" / "watchfloor" / "etc" / "watchfloor" / "watchfloor.toml").read_text()
    examples = [line[1:] for line in text.splitlines() if re.match(r"#(\[|\w+ = )", line)]
    draft = tmp_path / "draft.toml"
    draft.write_text("\n".join(examples))
    assert len(examples) >= 8 and check_file(draft) == []


def test_without_its_package_the_window_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "find_spec", lambda name: None)
    for is_picture in (False, True):
        with pytest.raises(Unavailable, match="not installed") as refused:
            _ = windows.screenshot("fleet", Path("x.png")) if is_picture else windows.open_console(None)
        assert "watchfloor-console" in refused.value.remedy
