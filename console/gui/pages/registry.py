"""The pages that work, in the order of the navigation. A page that does not work is not listed."""

from __future__ import annotations

from console.gui.pages.fleet.page import FleetPage
from console.gui.pages.interface import Page
from console.gui.pages.kill_switch.page import KillSwitchPage
from console.gui.pages.receipt.page import ReceiptPage

PAGES: tuple[type[Page], ...] = (FleetPage, KillSwitchPage, ReceiptPage)
