"""A plan that is broken in any way is an error that names the field; it never counts as empty."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from console.credentials.plan import Plan, load_plan
from console.domain.errors import ConsoleError

VERIFY: dict[str, Any] = {"kind": "command", "argv": ["/usr/bin/true"]}
HTTP: dict[str, Any] = {"kind": "http", "url": "https://keys.example/check", "headers": {"X-Key": "{value}"}}
ITEM: dict[str, Any] = {"kind": "file", "name": "hook", "path": "/etc/hook/secret", "verify": VERIFY}


def written(folder: Path, plan: object) -> Path:
    path = folder / "rotation.json"
    path.write_text(plan if isinstance(plan, str) else json.dumps(plan))
    path.chmod(0o600)
    return path


def items(*items: dict[str, Any]) -> dict[str, Any]:
    return {"schema_version": 1, "items": list(items)}


def test_no_file_is_the_empty_plan_and_every_kind_is_read(tmp_path: Path) -> None:
    assert load_plan(tmp_path / "rotation.json") == Plan(schema_version=1)
    request = {"url": "http://127.0.0.1:8200/v1/rotate", "headers": {"X-Vault-Token": "hvs.root", "Accept": "application/json"}}
    plan = load_plan(
        written(
            tmp_path,
            items(
                ITEM,
                {"kind": "command", "name": "deploy", "command": {"argv": ["/opt/rotate", "--now"], "timeout_s": 3.5}, "verify": HTTP},
                {"kind": "http", "name": "vault", "request": {**request, "body": {"new": "{new}"}}, "verify": HTTP},
                {"kind": "http", "name": "cloud", "request": request, "answer_field": "data.key", "verify": {**HTTP, "refused": [404]}},
                {"kind": "keyring", "name": "desk", "service": "mail", "username": "bot", "verify": VERIFY},
            ),
        )
    )
    assert [item.name for item in plan.items] == ["hook", "deploy", "vault", "cloud", "desk"]
    assert plan.secrets() == ["hvs.root", "hvs.root"], "what the plan itself holds is known to be secret"


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("", "Invalid JSON"),
        ("[]", "the file"),
        ("{", "Invalid JSON"),
        ({"items": []}, "schema_version: Field required"),
        ({"schema_version": 2, "items": []}, "schema_version"),
        ({"schema_version": 1, "itms": []}, "itms: Extra inputs"),
        (items(ITEM, ITEM), "'hook' stands there twice"),
        (items({**ITEM, "name": "api-key"}), "Watchfloor's own"),
        (items({**ITEM, "name": "../x"}), "items.0.name"),
        (items({**ITEM, "kind": "shell"}), "items.0.kind: Input should be 'command', 'http', 'keyring' or 'file'"),
        (items({**ITEM, "path": "secret"}), "absolute path"),
        (items({**ITEM, "path": "/etc/../root/x"}), "absolute path without .."),
        (items({k: v for k, v in ITEM.items() if k != "verify"}), "verify: Field required"),
        (items({**ITEM, "verify": {"kind": "command", "argv": ["true"]}}), "absolute path"),
        (items({**ITEM, "verify": {"kind": "command", "argv": []}}), "argv"),
        (items({**ITEM, "verify": {**VERIFY, "refused": [0]}}), "both refused and accepted"),
        (items({**ITEM, "verify": {**VERIFY, "refused": []}}), "refused"),
        (items({**ITEM, "verify": {**VERIFY, "timeout_s": 600}}), "timeout_s"),
        (items({**ITEM, "verify": {**HTTP, "headers": {}}}), "presented nowhere"),
        (items({**ITEM, "verify": {**HTTP, "refused": [200]}}), "both refused and accepted"),
        (items({**ITEM, "verify": {**HTTP, "url": "http://keys.example/"}}), "https only"),
        (items({**ITEM, "verify": {**HTTP, "url": "http://127.0.0.1.evil.example/"}}), "https only"),
        (items({**ITEM, "verify": {**HTTP, "url": "ftp://127.0.0.1/"}}), "https only"),
        (items({**ITEM, "verify": {**HTTP, "url": "https://u:p@keys.example/"}}), "neither user nor fragment"),
        (items({**ITEM, "verify": {**HTTP, "url": "https://keys.example/?k={value}"}}), "no placeholder may stand in a URL"),
        (items({**ITEM, "verify": {**HTTP, "url": "https://keys.example:99999/"}}), "items.0.verify.url"),
        (items({**ITEM, "verify": {**HTTP, "url": "https://keys.example/\r\nX: y"}}), "no URL has"),
        (items({"kind": "http", "name": "x", "request": {"url": "https://x/"}, "verify": VERIFY}), "sent nowhere"),
        (items({"kind": "keyring", "name": "x", "service": "watchfloor-0123abcd", "username": "u", "verify": VERIFY}), "Watchfloor itself"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, plan: object, words: str) -> None:
    with pytest.raises(ConsoleError) as caught:
        load_plan(written(tmp_path, plan))
    assert words in str(caught.value) and "is broken" in caught.value.what, caught.value


def test_an_error_quotes_no_value(tmp_path: Path) -> None:
    plan = items({**ITEM, "verify": {**HTTP, "headers": {"Authorization": 7, "X": "hunter2-hunter2"}}})
    with pytest.raises(ConsoleError) as caught:
        load_plan(written(tmp_path, plan))
    assert "hunter2" not in str(caught.value)


def test_only_the_operators_own_closed_file_counts(tmp_path: Path) -> None:
    path = written(tmp_path, items())
    for mode in (0o640, 0o602, 0o644, 0o666):
        path.chmod(mode)
        with pytest.raises(ConsoleError, match="open to other accounts"):
            load_plan(path)
    path.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
        with pytest.raises(ConsoleError, match="belongs to one"):
            load_plan(path)
        os.chown(path, 0, 0)
    elsewhere = path.rename(tmp_path / "elsewhere")
    path.symlink_to(elsewhere)
    with pytest.raises(ConsoleError, match="cannot be read"):
        load_plan(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ConsoleError):
        load_plan(path)
    path.unlink()
    with pytest.raises(ConsoleError, match="1 MiB"):
        load_plan(written(tmp_path, " " * (1024 * 1024 + 1)))


def test_the_state_directory_is_not_for_a_plan(tmp_path: Path) -> None:
    with pytest.raises(ConsoleError, match="state directory"):
        load_plan(written(tmp_path, items({**ITEM, "path": str(tmp_path / "keys" / "host-key.pem")})))
