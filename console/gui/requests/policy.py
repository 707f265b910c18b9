"""The verbs of the rules: what is in force, what is wrong with it, one call explained, a change tried and saved."""

from __future__ import annotations

from console.api import endpoints as ep
from console.api.policy import page as v
from console.api.policy import rules as p
from console.gui.link.http import Link
from console.gui.link.pending import Pending


class PolicyRequests:
    """Reads; and a save, which the supervisor puts on record first."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def rules(self) -> Pending[p.PolicyView]:
        """The rules in force, how often each decided, and when last."""
        return self._link.ask(ep.POLICY)

    def lint(self) -> Pending[v.LintView]:
        """What is wrong with them."""
        return self._link.ask(ep.LINT)

    def tools(self) -> Pending[v.ToolsView]:
        """What is known of tools."""
        return self._link.ask(ep.TOOLS)

    def sequences(self) -> Pending[v.SequencesView]:
        """Forbidden sequences, and the marks that stand."""
        return self._link.ask(ep.SEQUENCES)

    def calls(self, rule: str, verdict: str) -> Pending[v.JudgedView]:
        """The newest recorded calls that a rule decided."""
        return self._link.ask(ep.CALLS, rule=rule, verdict=verdict)

    def explain(self, body: v.ExplainBody) -> Pending[v.ExplainView]:
        """Nothing is recorded and nothing is done."""
        return self._link.ask(ep.EXPLAIN, body=body)

    def attempt(self, body: p.PolicyTryBody) -> Pending[p.PolicyTryView]:
        """What a change would have decided otherwise; nothing is changed."""
        return self._link.ask(ep.TRY_POLICY, body=body)

    def profiles(self) -> Pending[p.ProfilesView]:
        """The profiles, and what was chosen."""
        return self._link.ask(ep.PROFILES)

    def compare_profiles(self) -> Pending[p.ProfilesTriedView]:
        """What each profile would have decided of the calls of the last week; nothing is changed."""
        return self._link.ask(ep.COMPARE_PROFILES)

    def choose_profile(self, body: p.ProfileBody) -> Pending[p.ProfilesView]:
        """Chooses a profile for a type of agents; the supervisor puts it on record first."""
        return self._link.ask(ep.CHOOSE_PROFILE, body=body)

    def remove_exact(self, body: p.ExactRemoveBody) -> Pending[p.PolicyView]:
        """Ends a rule that was made of an approval."""
        return self._link.ask(ep.REMOVE_RULE, body=body)

    def save(self, body: p.PolicySaveBody) -> Pending[p.PolicyView]:
        """Conflict when other rules are in force than those it was written over."""
        return self._link.ask(ep.SAVE_POLICY, body=body)
