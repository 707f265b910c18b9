"""Scopes are granted at birth, and a child gets a subset."""

import pytest

from console.domain.errors import Denied, UsageProblem
from console.policy.scopes import ALL, Scope, at_birth, missing, needed_by, read_scopes

SOME = frozenset({Scope.READ_FS, Scope.CALL_API})


def test_a_root_gets_what_the_launcher_names_and_nothing_by_default() -> None:
    assert at_birth(None, SOME) == SOME and at_birth(None, None) == frozenset()


def test_a_child_gets_a_subset() -> None:
    assert (
        at_birth(SOME, None) == SOME
        and at_birth(SOME, frozenset({Scope.READ_FS})) == {Scope.READ_FS}
        and at_birth(SOME, frozenset()) == frozenset()
    )
    with pytest.raises(Denied, match="WRITE_FS"):
        at_birth(SOME, SOME | {Scope.WRITE_FS})
    with pytest.raises(Denied):
        at_birth(frozenset(), ALL)


def test_what_is_missing_is_denied_by_name() -> None:
    part = missing({Scope.DELETE_FS, Scope.READ_FS}, SOME, "x")
    assert part is not None and "DELETE_FS" in part.reason and "READ_FS," not in part.reason
    assert missing(SOME, SOME, "x") is None and missing((), frozenset(), "x") is None
    assert needed_by("delete") == (Scope.DELETE_FS, Scope.WRITE_FS) and needed_by("") == ()


def test_names() -> None:
    assert read_scopes(["READ_FS"]) == {Scope.READ_FS}
    for wrong in ("read_fs", "ALL", 1, None):
        with pytest.raises(UsageProblem):
            read_scopes([wrong])
