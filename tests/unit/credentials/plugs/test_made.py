"""Each item of a plan as a plug: where its old value is, how it is replaced, and what its verifier's answers mean."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from console.credentials.keyring_store import Store
from console.credentials.plan import Plan
from console.credentials.plugs import made
from console.credentials.plugs.interface import Plug
from console.credentials.plugs.made import kept_name, plugs_of
from console.domain.errors import ConsoleError, Unavailable

CODES = "{'good-value': 0, 'old-value-1': 1}.get(sys.stdin.readline().strip(), 9)"


def script(folder: Path, name: str, text: str) -> list[str]:
    path = folder / name
    path.write_text(f"#!{sys.executable} -IS\nimport json, sys\n{text}\n")
    path.chmod(0o700)
    return [str(path)]


def plug(store: Store, folder: Path, **item: Any) -> Plug:
    verify = {"kind": "command", "argv": script(folder, "verify", f"sys.exit({CODES})")}
    return plugs_of(Plan.read({"schema_version": 1, "items": [{"name": "hook", "verify": verify, **item}]}), store)[0]


def test_exit_codes_mean_accepted_refused_or_nothing(store: Store, tmp_path: Path) -> None:
    made = plug(store, tmp_path, kind="file", path=str(tmp_path / "secret"))
    assert [made.present(v) for v in ("good-value", "old-value-1", "anything")] == [True, False, None]


def test_a_command_is_given_both_values_and_what_it_said_is_shown_when_it_fails(store: Store, tmp_path: Path) -> None:
    keep = f"got = json.load(sys.stdin); open({str(tmp_path / 'got')!r}, 'w').write(json.dumps(got))"
    text = f"{keep}\nsys.exit('no: ' + got['new'] if got['old'] == 'bad' else 0)"
    made = plug(store, tmp_path, kind="command", command={"argv": script(tmp_path, "rotate", text)})
    assert made.old() is None
    store.set(kept_name("hook"), "old-value-1")
    assert made.old() == "old-value-1" and made.change("old-value-1", "new-value-2") == "new-value-2" == made.old()
    assert (tmp_path / "got").read_text() == '{"item": "hook", "old": "old-value-1", "new": "new-value-2"}'
    with pytest.raises(ConsoleError, match="ended with 1: no: new-value-3"):
        made.change("bad", "new-value-3")
    assert made.old() == "new-value-2"


def test_what_a_program_says_is_hidden_before_it_is_cut(store: Store, tmp_path: Path) -> None:
    """Cut first, half a value would be left at the end, which nobody recognises."""
    value = "0123456789abcdef" * 15
    text = "got = json.load(sys.stdin); sys.exit('x' * 4000 + got['new'])"
    made = plug(store, tmp_path, kind="command", command={"argv": script(tmp_path, "rotate", text)})
    store.set("new.hook", value)
    with pytest.raises(ConsoleError) as refusal:
        made.change("", value)
    assert value[:16] not in str(refusal.value) and "[secret]" in str(refusal.value)


def test_a_program_that_fails_over_a_value_that_it_made_is_not_quoted(store: Store, tmp_path: Path) -> None:
    text = "print('made-by-me-1'); sys.exit('cannot keep made-by-me-1')"
    made = plug(store, tmp_path, kind="command", prints_value=True, command={"argv": script(tmp_path, "rotate", text)})
    with pytest.raises(ConsoleError, match="ended with 1: what it said is not shown") as refusal:
        made.change("", "")
    assert "made-by-me" not in str(refusal.value)


@pytest.mark.parametrize(("printed", "good"), [("'issued-value'", True), ("''", False), ("'a\\nb'", False)])
def test_a_command_may_print_the_value_that_the_other_side_made(store: Store, tmp_path: Path, printed: str, good: bool) -> None:
    made = plug(store, tmp_path, kind="command", prints_value=True, command={"argv": script(tmp_path, "rotate", f"print({printed})")})
    assert made.issues
    if good:
        assert made.change("", "") == "issued-value" == made.old()
    else:
        with pytest.raises(ConsoleError, match="one value"):
            made.change("", "")


@pytest.mark.parametrize(
    ("status", "field", "good"), [(200, "", True), (204, "", True), (302, "", False), (500, "", False), (200, "key", True)]
)
def test_a_request_is_believed_on_2xx_alone(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, field: str, good: bool
) -> None:
    sent: list[dict[str, str]] = []

    def ask(_spec: object, values: dict[str, str]) -> tuple[int, bytes]:
        sent.append(values)
        return status, b'{"key": "issued-value"}'

    monkeypatch.setattr(made, "ask", ask)
    item = plug(store, tmp_path, kind="http", request={"url": "https://x/", "body": "{new}"}, answer_field=field)
    if good:
        assert item.change("o", "n") == ("issued-value" if field else "n") == item.old()
    else:
        with pytest.raises(Unavailable, match=f"answered {status}"):
            item.change("o", "n")
    assert sent == [{"old": "o", "new": "n"}]


def test_an_http_verifier_judges_by_status(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    verify = {"kind": "http", "url": "https://x/", "headers": {"X": "{value}"}, "refused": [404], "accepted": [200]}
    item = {"name": "hook", "kind": "file", "path": "/x/y", "verify": verify}
    [made_plug] = plugs_of(Plan.read({"schema_version": 1, "items": [item]}), store)
    for status, means in ((200, True), (404, False), (401, None), (500, None)):
        monkeypatch.setattr(made, "ask", lambda spec, values, status=status: (status, b""))
        assert made_plug.present("v") is means


def test_a_file_and_a_keyring_entry_are_read_back(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("old-value-1")
    file = plug(store, tmp_path, kind="file", path=str(tmp_path / "secret"))
    assert file.old() == "old-value-1" and file.change("", "new-value-2") == "new-value-2" == file.old()
    monkeypatch.setattr(made, "write_secret", lambda path, value: None)
    with pytest.raises(ConsoleError, match="read back"):
        file.change("", "new-value-3")

    class Ring:
        kept = {"bot": "old-value-1"}

        def get(self, name: str) -> str | None:
            return self.kept.get(name)

        def set(self, name: str, value: str) -> None:
            if value != "swallowed":
                self.kept[name] = value

    monkeypatch.setattr(made, "open_entry", lambda service: Ring())
    entry = plug(store, tmp_path, kind="keyring", service="mail", username="bot")
    assert entry.old() == "old-value-1" and entry.change("", "new-value-2") == "new-value-2" == entry.old()
    with pytest.raises(ConsoleError, match="read back"):
        entry.change("", "swallowed")
