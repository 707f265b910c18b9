"""Roles by group: what each allows, and a group file that is odd gives nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.domain.roles.rights import ALLOWS, GIVEN_BY, OWNER, Right, Role, member, refusal, roles_of

GROUPS = """\
root:x:0:
watchfloor-viewer:x:901:ada
watchfloor-operator:x:902:
watchfloor-responder:x:903:
watchfloor-auditor:x:904:
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "group").write_text(GROUPS)
    return tmp_path / "group"


def test_each_role_allows_what_the_documents_say() -> None:
    assert {role.value: sorted(rights) for role, rights in ALLOWS.items()} == {
        "viewer": ["read"],
        "auditor": ["export", "read"],
        "responder": ["kill", "read"],
        "operator": ["kill", "operate", "read"],
    }


def test_several_groups_give_the_union_and_none_gives_nothing() -> None:
    both = member([Role.RESPONDER, Role.AUDITOR])
    assert both.rights == {Right.READ, Right.EXPORT, Right.KILL} and both.roles == (Role.AUDITOR, Role.RESPONDER)
    assert not member([]).rights and not member([]).is_owner
    assert OWNER.rights == set(Right) and OWNER.is_owner


def test_no_role_holds_what_only_root_may() -> None:
    for right in (Right.REARM, Right.RELEASE, Right.SETTINGS, Right.ADMINISTER):
        assert not any(right in rights for rights in ALLOWS.values()) and right not in GIVEN_BY


def test_roles_come_from_the_group_file_of_the_host(file: Path) -> None:
    assert roles_of({901, 903, 27}, file) == {Role.VIEWER, Role.RESPONDER}
    assert roles_of({27}, file) == roles_of(set(), file) == frozenset()


def test_a_group_that_is_missing_and_a_file_that_is_missing_give_nothing(file: Path, tmp_path: Path) -> None:
    file.write_text(GROUPS.replace("watchfloor-operator", "operator"))
    assert roles_of({902}, file) == frozenset()
    assert roles_of({901, 902, 903, 904}, tmp_path / "none") == frozenset()


@pytest.mark.parametrize(
    "line",
    [
        "watchfloor-operator:x:0:",
        "watchfloor-operator:x::",
        "watchfloor-operator:x",
        "watchfloor-operator",
        "watchfloor-operator:x:-1:",
        "watchfloor-operator:x:٩٠٢:",
        "watchfloor-operator:x:0x386:",
        " watchfloor-operator:x:902:",
        "watchfloor-operator2:x:902:",
        "watchfloor-viewer:x:905:\nwatchfloor-operator:x:99999999999:",
    ],
)
def test_a_line_that_is_odd_gives_nothing(file: Path, line: str) -> None:
    file.write_text(line + "\n")
    assert roles_of({0, 902, 386, 1}, file) == frozenset()


def test_the_first_line_of_a_name_counts(file: Path) -> None:
    file.write_text("watchfloor-operator:x:902:\nwatchfloor-operator:x:27:\n")
    assert roles_of({27}, file) == frozenset() and roles_of({902}, file) == {Role.OPERATOR}


@pytest.mark.parametrize("right", list(Right))
def test_a_refusal_is_a_plain_sentence_with_the_group_or_roots_command_and_exit_4(right: Right) -> None:
    error = refusal(right, "sudo watchfloor rearm --reason ...")
    assert (int(error.exit_code), error.http_status) == (4, 403)
    role = GIVEN_BY.get(right)
    if role is not None:
        assert f"the role {role.value}" in error.what and role.group in error.what and f"--groups {role.group}" in error.remedy
    else:
        assert "Only root" in error.what and "sudo watchfloor rearm" in error.remedy
