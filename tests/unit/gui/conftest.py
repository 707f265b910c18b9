"""What every test of the window's parts begins with."""

import pytest

from console.api.records import AccountsView, AccountView
from console.gui.models.operators import OPERATORS


@pytest.fixture(autouse=True)
def known_root() -> None:
    """Names are one table of the process, so what another test learned would be seen here too."""
    OPERATORS.learn(AccountsView(accounts=[AccountView(0, "root")]))
