"""The pages that work, in the order of the navigation. A page that does not work is not listed."""

from __future__ import annotations

from console.gui.pages.activity.page import ActivityPageView
from console.gui.pages.approvals.page import ApprovalsPage
from console.gui.pages.audit.page import AuditLogPage
from console.gui.pages.budgets.page import BudgetsPage
from console.gui.pages.fleet.page import FleetPage
from console.gui.pages.interface import Page
from console.gui.pages.kill_switch.page import KillSwitchPage
from console.gui.pages.network.page import NetworkPage
from console.gui.pages.policy.page import PolicyPage
from console.gui.pages.receipt.page import ReceiptPage
from console.gui.pages.rollback.page import RollbackRecordsPage
from console.gui.pages.settings.page import SettingsPage

PAGES: tuple[type[Page], ...] = (
    FleetPage,
    ApprovalsPage,
    PolicyPage,
    NetworkPage,
    BudgetsPage,
    RollbackRecordsPage,
    AuditLogPage,
    KillSwitchPage,
    SettingsPage,
    ReceiptPage,
    ActivityPageView,
)
