"""Names of the operators that records hold by number. The window looks up no account itself: the supervisor tells it the names."""

from __future__ import annotations

import os

from console.api.records import AccountsView
from console.domain.process.account import account_words, with_names

MOST = 64
"""Numbers that are asked for at once."""


class OperatorNames:
    """What each number is called."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._missing = {0, os.getuid()}
        """Asked for at the first opportunity, so that the usual operators have their names before anything is shown."""

    def words(self, by: str) -> str:
        """``operator:1000`` as ``ann (Ann Adams, uid 1000)``, or as ``uid 1000`` until its name came; also within a sentence."""
        return with_names(by, self._name)

    def _name(self, uid: int) -> str:
        if uid not in self._names:
            self._missing.add(uid)
        return self._names.get(uid) or account_words(uid, "")

    def wanted(self) -> str:
        """Numbers that were shown without a name, as the endpoint takes them; empty: none."""
        return ",".join(str(uid) for uid in sorted(self._missing)[:MOST])

    def learn(self, view: AccountsView) -> None:
        """Names that the supervisor told."""
        self._names |= {one.uid: account_words(one.uid, one.login, one.full_name) for one in view.accounts}
        self._missing -= self._names.keys()


OPERATORS = OperatorNames()
"""One for the process: names of accounts are the same for every window and every row."""
person = OPERATORS.words
"""``person(row.by)``: who it was, for a sentence or a cell."""
