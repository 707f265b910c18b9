"""What the console asks of the supervisor: one function per verb, each giving a Pending view."""

from console.gui.requests.activity import ActivityRequests
from console.gui.requests.rooms import AuditRequests, FleetRequests, NetworkRequests, Requests, RollbackRequests, SwitchRequests

__all__ = ["ActivityRequests", "AuditRequests", "FleetRequests", "NetworkRequests", "Requests", "RollbackRequests", "SwitchRequests"]
