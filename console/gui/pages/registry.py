"""The pages that work, in the order of the navigation. A page that does not work is not listed.

A page's code is loaded when the page is first opened, so that no start waits for the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from console.gui.pages import declared
from console.gui.pages.declared import PageSpec
from console.gui.pages.interface import Page


@dataclass(frozen=True, slots=True)
class PageKind:
    """A page before it is loaded."""

    spec: PageSpec
    load: Callable[[], type[Page]]


def _fleet() -> type[Page]:
    from console.gui.pages.fleet.page import FleetPage

    return FleetPage


def _approvals() -> type[Page]:
    from console.gui.pages.approvals.page import ApprovalsPage

    return ApprovalsPage


def _policy() -> type[Page]:
    from console.gui.pages.policy.page import PolicyPage

    return PolicyPage


def _network() -> type[Page]:
    from console.gui.pages.network.page import NetworkPage

    return NetworkPage


def _budgets() -> type[Page]:
    from console.gui.pages.budgets.page import BudgetsPage

    return BudgetsPage


def _rollback() -> type[Page]:
    from console.gui.pages.rollback.page import RollbackRecordsPage

    return RollbackRecordsPage


def _audit() -> type[Page]:
    from console.gui.pages.audit.page import AuditLogPage

    return AuditLogPage


def _kill_switch() -> type[Page]:
    from console.gui.pages.kill_switch.page import KillSwitchPage

    return KillSwitchPage


def _settings() -> type[Page]:
    from console.gui.pages.settings.page import SettingsPage

    return SettingsPage


def _receipt() -> type[Page]:
    from console.gui.pages.receipt.page import ReceiptPage

    return ReceiptPage


def _activity() -> type[Page]:
    from console.gui.pages.activity.page import ActivityPageView

    return ActivityPageView


PAGES: tuple[PageKind, ...] = (
    PageKind(declared.FLEET, _fleet),
    PageKind(declared.APPROVALS, _approvals),
    PageKind(declared.POLICY, _policy),
    PageKind(declared.NETWORK, _network),
    PageKind(declared.BUDGETS, _budgets),
    PageKind(declared.ROLLBACK, _rollback),
    PageKind(declared.AUDIT, _audit),
    PageKind(declared.KILL_SWITCH, _kill_switch),
    PageKind(declared.SETTINGS, _settings),
    PageKind(declared.RECEIPT, _receipt),
    PageKind(declared.ACTIVITY, _activity),
)
