"""sources.json: the example loads, every mistake is named with its place, and nothing hostile reads as a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from console.domain.errors import ConsoleError, UsageProblem
from console.settings.sources_file import MAX_BYTES, load_sources, parse_sources

EXAMPLE = (Path(__file__).parents[2] / "data" / "python-data-agent.json").read_text()
TYPE = "python-data-agent"


def test_the_example_loads_and_says_what_it_gives() -> None:
    found = parse_sources(EXAMPLE, "f", TYPE)
    narrowing = found.narrowing()
    assert set(narrowing.only) == {
        "api.github.com", "raw.githubusercontent.com", "packages.example.org", "huggingface.co", "github.com", "gitlab.com",
    }  # fmt: skip
    assert narrowing.never == ("*.internal", "metadata.google.internal") and narrowing.most_bytes == 1000 << 20
    assert found.variables()["PIP_INDEX_URL"] == "https://packages.example.org/simple/"
    assert found.variables()["npm_config_offline"] == "true" and found.variables()["GIT_ALLOW_PROTOCOL"] == "https"
    assert (found.runtime.max_execution_time_seconds, found.runtime.max_memory_mb) == (300, 2048)
    assert any("https registry" in line for line in found.not_enforced())


def test_the_example_of_the_docs_loads() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "sandboxes.md").read_text()
    [example] = [block.split("```")[0] for block in page.split("```json\n")[1:] if '"agent_type"' in block.split("```")[0]]
    found = parse_sources(example, "docs/reference/sandboxes.md", "reader")
    assert "api.example.com" in found.narrowing().only and found.variables()["PIP_INDEX_URL"] == "https://packages.example.org/simple/"


def changed(path: str, value: Any) -> str:
    data = json.loads(EXAMPLE)
    *parents, last = path.split(".")
    place = data
    for name in parents:
        place = place[int(name)] if name.isdigit() else place[name]
    place[last] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ("agent_type", "", "$.agent_type"),
        ("agent_type", "another", "$.agent_type"),
        ("package_managers.pip.enabled", "yes", "$.package_managers.pip.enabled"),
        ("package_managers.pip.registries", [], "$.package_managers.pip"),
        ("package_managers.pip.registries.0.url", "ftp://x.test/", "$.package_managers.pip.registries[0].url"),
        ("package_managers.pip.registries.0.url", "https://u:p@x.test/", "$.package_managers.pip.registries[0].url"),
        ("package_managers.pip.registries.0.url", "https://x.test:8443/", "$.package_managers.pip.registries[0].url"),
        ("package_managers.pip.registries.0.url", "https://x.test/a b", "$.package_managers.pip.registries[0].url"),
        ("package_managers.pip.blocked_packages", ["a/../b"], "$.package_managers.pip.blocked_packages: [0]"),
        ("package_managers.pip.max_install_size_mb", 0, "$.package_managers.pip.max_install_size_mb"),
        ("package_managers.gem", {}, "$.package_managers.gem"),
        ("web_access.allowed_domains", ["ok.test", "*"], "$.web_access.allowed_domains: [1]"),
        ("web_access.allowed_domains", ["EVIL.test"], "$.web_access.allowed_domains: [0]"),
        ("web_access.blocked_domains", [7], "$.web_access.blocked_domains[0]"),
        ("git.allowed_remotes", ["file:///etc"], "$.git.allowed_remotes: [0]"),
        ("git.allowed_remotes", ["ext::sh -c id"], "$.git.allowed_remotes: [0]"),
        ("runtime.max_memory_mb", 2048.5, "$.runtime.max_memory_mb"),
        ("runtime.max_execution_time_seconds", True, "$.runtime.max_execution_time_seconds"),
        ("runtime.interpreters", {"python": "python3"}, "$.runtime.interpreters"),
        ("runtime.languages", ["\u202epython"], "$.runtime.languages: [0]"),
        ("secret", 1, "$.secret"),
    ],
)
def test_each_mistake_is_refused_with_file_and_place(path: str, value: Any, where: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        parse_sources(changed(path, value), "sources/x.json", TYPE)
    assert str(caught.value).startswith(f"sources/x.json: {where}") and caught.value.remedy


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '{"agent_type": "x", "agent_type": "python-data-agent"}', "[" * 100_000])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(UsageProblem, match=r"sources/x\.json: "):
        parse_sources(text, "sources/x.json", TYPE)


def test_files_are_found_by_type_and_never_read_as_none_when_broken(tmp_path: Path) -> None:
    assert load_sources(tmp_path, TYPE) is None
    (tmp_path / f"{TYPE}.json").write_text(EXAMPLE)
    assert load_sources(tmp_path, TYPE) is not None
    for broken in (b"\xff\xfe", b" " * (MAX_BYTES + 1)):
        (tmp_path / f"{TYPE}.json").write_bytes(broken)
        with pytest.raises(UsageProblem):
            load_sources(tmp_path, TYPE)
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(ConsoleError):
        load_sources(tmp_path, "folder")
    for hostile in ("../x", "a/b", "A" * 64):
        with pytest.raises(UsageProblem):
            load_sources(tmp_path, hostile)


def test_blocked_names_are_matched_as_registries_read_them() -> None:
    import re

    registry = {"name": "r", "url": "http://r.test/simple/"}
    text = changed("package_managers.pip", {"enabled": True, "registries": [registry], "blocked_packages": ["Py.Auto-GUI", "x+"[:1]]})
    ((host, pattern), _) = parse_sources(text, "f", TYPE).narrowing().blocked_paths
    assert host == "r.test"
    for path in ("/simple/py-auto-gui", "/simple/PY_auto..gui/", "/simple/py.auto.gui/x.whl", "/simple/packages/py_auto_gui-1.0.whl"):
        assert re.fullmatch(pattern, path), path
    for path in ("/simple/py-auto-guix/", "/simple/pandas/", "/other/py-auto-gui-"):
        assert not re.fullmatch(pattern, path), path
