"""Every endpoint of operator.sock: one row each. Router, access check, client and docs/reference/endpoints.md come from this table.

What is not in it is not routed. Of two rows that fit a path the first one answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast

from console.api import alerts as al
from console.api import allowlist_review as r
from console.api import budgets as b
from console.api import ladder as la
from console.api import messages as m
from console.api import network as n
from console.api import persistence as pe
from console.api import rearm as rm
from console.api import records as rc
from console.api import secrets as s
from console.api import settings as st
from console.api.agents import activity as ac
from console.api.agents import adopt as ad
from console.api.agents import agent_types as at
from console.api.agents import first_run as fr
from console.api.agents import programs as pm
from console.api.agents import sessions as w
from console.api.policy import approvals as a
from console.api.policy import dry_run as dm
from console.api.policy import hooks as ho
from console.api.policy import page as pg
from console.api.policy import rules as p
from console.domain.roles.rights import Right

B = TypeVar("B")
V = TypeVar("V")
W = TypeVar("W")
READ, EXPORT, KILL, OPERATE = Right.READ, Right.EXPORT, Right.KILL, Right.OPERATE
SETTINGS = Right.SETTINGS
"""Settings name accounts and programs that root starts: no role has this, and polkit lets an administrator alone."""
ROOT = Right.ADMINISTER
"""What reads root's own files, writes them, holds keys, or ends the supervisor."""
CHANGE_S = 60.0
"""Envoy validates before it applies, agents may be halted, a whole session or host is looked at."""
TALK_S = 30.0
"""A program answers, an agent is killed; a receiver has 10 s, and a keyring 5 s before it."""
TRY_S = 120.0
"""All recorded calls are judged again."""
LAUNCH_S = 300.0
"""A first container launch builds its image."""
ROTATION_S = 120.0
"""A plan may hold programs that take their time."""
START_S = 600.0
"""Up to fifty programs, one after the other."""


@dataclass(frozen=True, slots=True)
class ByWord:
    """The right of an endpoint that does several things, by the word in ``field``: part of its path, or else of its body."""

    field: str
    rights: Mapping[str, Right]
    """A word that is not in it is for root alone."""


@dataclass(frozen=True, slots=True, eq=False)
class Endpoint(Generic[B, V]):
    """One thing that a supervisor can be asked."""

    method: str
    path: str
    """With ``{name}`` for one segment; ``{name:str}`` for a verb."""
    right: Right | ByWord
    body: type[B]
    """NoneType: it takes none."""
    answer: type[V]
    what: str
    is_open: bool
    """Whether it is served while killed."""
    wait_s: float | None
    """Longest wait of a client; None: the client's own."""

    @property
    def name(self) -> str:
        """Method and path."""
        return f"{self.method} {self.path}"

    def at(self, segment: Callable[[str], str], *ids: str | int) -> str:
        """The path with its parts replaced, in their order; ``segment`` makes one segment of an id, which may be hostile."""
        given = iter(ids)
        return re.sub(r"\{[^}]*\}", lambda _: segment(str(next(given))), self.path)

    def answering(self, answer: type[W]) -> Endpoint[B, W]:
        """The same endpoint where it answers with another message: a kill with its receipt."""
        changed: Any = {"answer": answer}
        return cast("Endpoint[B, W]", replace(self, **changed))


_Nothing = type(None)
_STEPS = {"freeze": KILL, "isolate": KILL, "kill": KILL, "thaw": OPERATE, "reconnect": OPERATE}


def _get(path: str, answer: type[V], what: str, right: Right = READ, wait_s: float | None = None) -> Endpoint[None, V]:
    """A read: it stays up while killed."""
    return Endpoint("GET", path, right, _Nothing, answer, what, True, wait_s)


def _do(path: str, answer: type[V], what: str, right: Right, wait_s: float | None = None, *, is_open: bool = False) -> Endpoint[None, V]:
    """A change that needs no body."""
    return Endpoint("POST", path, right, _Nothing, answer, what, is_open, wait_s)


def _post(
    path: str,
    body: type[B],
    answer: type[V],
    what: str,
    right: Right | ByWord = OPERATE,
    wait_s: float | None = None,
    *,
    is_open: bool = False,
    method: str = "POST",
) -> Endpoint[B, V]:
    """A change, or a read that takes a body. Refused while killed, unless it says otherwise."""
    return Endpoint(method, path, right, body, answer, what, is_open, wait_s)


# --- the supervisor
STATUS = _get("/api/status", m.StatusView, "State of the supervisor, its parts and the kill switch.")
ACCOUNTS = _get("/api/accounts", rc.AccountsView, "Login and full name of accounts, by their numbers.")
FIRST_RUN = _get("/api/first-run", fr.FirstRunView, "What was found at the first start, and the defaults that hold.")
EVENTS = _get("/api/events", m.Delta, "Changes as server-sent events, from after Last-Event-ID on.")
SOURCES = _get("/api/sources", at.SourcesView, "Agent types, and what each may use.")
METRICS = _get("/metrics", str, "Metrics in Prometheus' text format.")
SESSION_METRICS = _get("/metrics/sessions", str, "Metrics with the ids of sessions and the names of agents.")
SHUTDOWN = _do("/api/shutdown", m.DoneView, "End the supervisor; refused while agents live.", ROOT, is_open=True)
CONFIG = _get("/api/settings", st.SettingsView, "Every setting, where it comes from, and what locks it.")
CHANGE_CONFIG = _post("/api/settings", st.SettingBody, st.SettingsView, "Change a setting for the next start.", SETTINGS, CHANGE_S)

# --- agents
FLEET = _get("/api/fleet", m.FleetView, "Every agent.")
AGENT = _get("/api/agents/{id}", m.AgentDetailView, "One agent with its events and connections.")
OUTPUT = _get("/api/agents/{id}/output", m.OutputView, "What an agent wrote, from a byte offset on.")
ACTIVITY = _get("/api/agents/{id}/activity", ac.ActivityPage, "What an agent did: 200 entries, below or above one of them.")
ACTIVITY_ENTRY = _get("/api/agents/{id}/activity/{seq}", ac.ActivityEntryView, "One entry with all that is kept of it.")
MCP = _get("/api/mcp", ac.McpView, "MCP servers with the tools that agents were seen to call.")
LAUNCH = _post("/api/agents", m.LaunchBody, m.LaunchedView, "Start an agent; the answer comes once it runs.", OPERATE, LAUNCH_S)
AGAIN = _post("/api/agents/{id}/again", rm.AgainBody, m.LaunchedView, "The same command in the same session.", OPERATE, LAUNCH_S)
KILL_AGENT = _post("/api/agents/{id}/kill", m.ActBody, m.RawView, "Kill an agent; the answer is the receipt.", KILL, TALK_S, is_open=True)
MESSAGE = _post("/api/agents/{id}/message", pm.SayBody, pm.SaidView, "Send a message to a program.", OPERATE, TALK_S)
INTERRUPT = _post("/api/agents/{id}/interrupt", pm.InterruptBody, pm.SaidView, "Interrupt a program's work.", OPERATE, TALK_S)
FINISH = _post("/api/agents/{id}/end", pm.EndBody, pm.EndedView, "Ask a program to end; nothing is killed.", OPERATE, TALK_S)
REVOKE_TOKEN = _do("/api/agents/{id}/revoke-token", s.RevokedView, "Revoke the tokens of one agent.", OPERATE, is_open=True)
ACT = _post("/api/agents/{id}/{verb:str}", m.ActBody, m.ActView, "Act on one agent.", ByWord("verb", _STEPS), TALK_S)
PROGRAMS = _get("/api/programs", pm.ProgramsView, "Programs that can be started.", wait_s=TALK_S)
START = _post("/api/programs", pm.ProgramsBody, pm.ProgramsStarted, "Start programs; each is judged before any starts.", OPERATE, START_S)
PREVIEW_PROGRAMS = _post(
    "/api/programs/preview", pm.ProgramsBody, pm.ProgramPreviews, "What a start would do.", OPERATE, START_S, is_open=True
)
PREVIEW_COMMAND = _post(
    "/api/programs/preview-command", m.LaunchBody, pm.ProgramPreview, "What the start of a command would do.", OPERATE, TALK_S, is_open=True
)
CANDIDATES = _get("/api/adopt/candidates", ad.CandidatesView, "Processes that an observed agent may be.", wait_s=TALK_S)
ADOPT = _post("/api/adopt", ad.AdoptBody, ad.AdoptedView, "Take an observed agent over.", OPERATE, CHANGE_S)

# --- stop
STEP = _post("/api/ladder", la.LadderBody, m.ActView, "Freeze, isolate, kill, thaw or reconnect a scope. While killed: kill only.",
             ByWord("action", _STEPS), CHANGE_S, is_open=True)  # fmt: skip
PREVIEW_BY_QUERY = _get("/api/ladder/preview", la.LadderPreview, "What a step would do, asked by query.")
PREVIEW = _post("/api/ladder/preview", la.LadderBody, la.LadderPreview, "What a step would do.", READ, is_open=True)
KILL_SWITCH = _get("/api/kill-switch", m.KillSwitchView, "State of the kill switch.")
SWITCH = _post("/api/kill-switch", la.SwitchBody, m.KillSwitchView, "Kill a scope (the answer is the receipt), or rearm.",
               ByWord("action", {"activate": KILL, "rearm": Right.REARM, "deactivate": Right.REARM}), CHANGE_S, is_open=True)  # fmt: skip
SELF_TEST = _do("/api/kill-switch/test", fr.SelfTestView, "Kill a process of the supervisor's own, as a test.", KILL, TALK_S)
REARM = _get("/api/kill-switch/rearm", rm.RearmView, "What a rearm would release, what it takes, and who was running.")
PASSPHRASE = _get("/api/passphrase", rm.PassphraseView, "Whether a rearm takes a passphrase.")
# A rearm takes it, so it stays up; a reset needs the owner, a terminal and the typed kill.
CHANGE_PASSPHRASE = _post(
    "/api/passphrase", rm.PassphraseBody, rm.PassphraseView, "Set or reset the passphrase.", ROOT, CHANGE_S, is_open=True
)
RETRY_REMOTE = _do("/api/remote/retry", m.KillSwitchView, "Send the remote order again.", KILL, CHANGE_S, is_open=True)
RECEIPTS = _get("/api/receipts", m.ReceiptsView, "Receipts, newest first.")
RECEIPT = _get("/api/receipts/{id}", m.RawView, "One receipt.")
PERSISTENCE = _get("/api/persistence", pe.PersistenceView, "What could start an agent again; a session is looked at now.", wait_s=CHANGE_S)

# --- sessions and network
CONTEXTS = _get("/api/contexts", w.ContextsView, "Sessions and their workspaces.")
SESSION_ACT = _post("/api/contexts/{id}/{verb:str}", w.ContextActBody, w.ContextsView, "Hold, release or delete a session.",
                    ByWord("verb", {"hold": OPERATE, "delete": OPERATE, "release": Right.RELEASE}), CHANGE_S)  # fmt: skip
MODES = _get("/api/contexts/{id}/modes", n.ModeHistoryView, "Changes of a session's network mode, newest first.")
STRICTER = _post("/api/network/stricter", n.StricterBody, n.StricterView, "Tighten a session's network.", OPERATE, CHANGE_S)
REGISTER_DATA = _post("/api/network/private-data", n.RegisterDataBody, n.StricterView, "Register a session's data.", OPERATE, CHANGE_S)
ENVOY = _get("/api/envoy/config", n.EnvoyConfigView, "The configuration that Envoy runs with.")
EGRESS = _get("/api/egress", m.EgressPage, "Connections, newest first.")
ALLOWLIST = _get("/api/allowlist", m.AllowlistView, "The allowlist.")
ADD_ENTRY = _post("/api/allowlist", m.AllowlistEntryBody, m.AllowlistChangedView, "Add an entry once Envoy took it.", OPERATE, CHANGE_S)
TEST_URL = _post("/api/allowlist/test", m.UrlTestBody, m.UrlTestView, "Whether a URL is allowed.", READ, CHANGE_S, is_open=True)
ALLOWLIST_HISTORY = _get("/api/allowlist/history", r.AllowlistHistoryView, "Versions of the allowlist, newest first.")
REVERT = _post("/api/allowlist/revert", r.RevertBody, m.AllowlistChangedView, "Go back to an older version.", OPERATE, CHANGE_S)
BACKTEST = _post(
    "/api/allowlist/backtest", r.BacktestBody, r.BacktestView, "What a change would have allowed.", READ, CHANGE_S, is_open=True
)
ALLOWLIST_FILE = _get("/api/allowlist/file", r.AllowlistFileView, "The allowlist as a file.", EXPORT)
IMPORT = _post("/api/allowlist/import", r.ImportBody, r.ImportView, "Take entries from a file.", OPERATE, CHANGE_S)
CHANGE_ENTRY = _post(
    "/api/allowlist/{id}", m.AllowlistEntryBody, m.AllowlistChangedView, "Change an entry.", OPERATE, CHANGE_S, method="PUT"
)
REMOVE_ENTRY = Endpoint("DELETE", "/api/allowlist/{id}", OPERATE, _Nothing, m.AllowlistChangedView, "Remove an entry.", False, CHANGE_S)

# --- limits
BUDGETS = _get("/api/budgets", b.BudgetsView, "Every tree with its limits and usage.")
BUDGET_NODE = _get("/api/budgets/node", b.BudgetNodeView, "Limits and usage of one scope.")
BUDGET_HISTORY = _get("/api/budgets/history", b.BudgetHistoryView, "Changes of limits, newest first.")
BUDGET_PICTURES = _get("/api/budgets/pictures", b.BudgetPictures, "What the charts show.")
CHANGE_BUDGET = _post("/api/budgets", b.BudgetBody, b.BudgetSetView, "Change limits.", OPERATE, CHANGE_S)

# --- policy and approvals
APPROVALS = _get("/api/approvals", a.ApprovalsView, "Pending approvals, and what was decided.")
DECIDE = _post("/api/approvals", a.DecideBody, a.DecideView, "Approve or deny.", OPERATE, CHANGE_S)
GRANTS = _get("/api/approvals/grants", a.GrantsView, "Standing approvals.")
END_GRANTS = _post("/api/approvals/grants/end", a.EndGrantBody, a.GrantsView, "End standing approvals.", OPERATE, CHANGE_S)
APPROVAL = _get("/api/approvals/{id}", a.ApprovalDetailView, "One approval with all that is known of it.")
DRAFT = _get("/api/approvals/{id}/draft", p.DraftView, "A policy rule that would answer this call.")
OFFERED_RULE = _get("/api/approvals/{id}/rule", p.ExactOffer, "The exact rule that would allow this call.")
ADD_RULE = _post("/api/approvals/{id}/rule", p.ExactBody, p.ExactRule, "Allow this exact call from now on.", OPERATE, CHANGE_S)
POLICY = _get("/api/policy", p.PolicyView, "The policy and its rules.")
SAVE_POLICY = _post("/api/policy", p.PolicySaveBody, p.PolicyView, "Replace the policy.", OPERATE, CHANGE_S)
TRY_POLICY = _post("/api/policy/backtest", p.PolicyTryBody, p.PolicyTryView, "What a policy would change.", READ, TRY_S, is_open=True)
REMOVE_RULE = _post("/api/policy/exact/remove", p.ExactRemoveBody, p.PolicyView, "Remove an exact rule.", OPERATE, CHANGE_S)
PROFILES = _get("/api/policy/profiles", p.ProfilesView, "The profiles, and which one holds.")
COMPARE_PROFILES = _get("/api/policy/profiles/compare", p.ProfilesTriedView, "How each profile would have answered.", wait_s=TRY_S)
CHOOSE_PROFILE = _post("/api/policy/profiles", p.ProfileBody, p.ProfilesView, "Choose a profile.", OPERATE, CHANGE_S)
LINT = _get("/api/policy/lint", pg.LintView, "Mistakes in the policy.")
TOOLS = _get("/api/policy/tools", pg.ToolsView, "Tools, and how the policy answers each.")
SEQUENCES = _get("/api/policy/sequences", pg.SequencesView, "Sequences of calls that the policy watches for.")
CALLS = _get("/api/policy/calls", pg.JudgedView, "Recent calls by rule and verdict.")
EXPLAIN = _post("/api/policy/explain", pg.ExplainBody, pg.ExplainView, "Why a call would be answered so.", READ, TALK_S, is_open=True)
HOOKS = _get("/api/hooks", ho.HooksView, "Programs and agents whose hook was heard.")
HOOK_PREVIEW = _get("/api/hooks/{program}/preview", fr.HookPreview, "What install-hook would write into root's files.", ROOT)
DRY_RUN = _post("/api/dry-run", dm.DryRunBody, dm.DryRunView, "Turn an agent's dry run on or off.", OPERATE, TALK_S)
PLANS = _get("/api/plans/{agent}", dm.PlansView, "What an agent planned in dry run.", wait_s=TALK_S)
DECIDE_PLAN = _post("/api/plans", dm.PlanBody, dm.PlanDecidedView, "Approve or discard a plan.", OPERATE, TALK_S)

# --- records
AUDIT = _get("/api/audit", rc.AuditPage, "Records of the log, newest first.")
EXPORT_AUDIT = _get("/api/audit/export", rc.AuditPiece, "A part of the log's file, as it is.", EXPORT, CHANGE_S)
VERIFY_AUDIT = _post("/api/audit/verify", rc.VerifyBody, rc.AuditVerdict, "Verify the log.", READ, CHANGE_S, is_open=True)
ACKNOWLEDGE = _post(
    "/api/audit/acknowledge", rc.AcknowledgeLossBody, rc.AuditVerdict, "Acknowledge a loss of the log.", ROOT, CHANGE_S, is_open=True
)
ROLLBACK = _get("/api/rollback", rc.RollbackPage, "Snapshots, newest first.")
ROLLBACK_DETAIL = _get("/api/rollback/{id}", rc.RollbackDetailView, "One snapshot with its difference.")
RESTORE = _post("/api/rollback/{id}/restore", rc.RestoreBody, rc.RollbackRow, "Restore a file that is what was shown.", ROOT, CHANGE_S)

# --- secrets and alerts
ROTATION = _get("/api/rotation", s.RotationView, "The plan of the rotation without any value, and its last result.")
ROTATE = _post("/api/rotation", s.RotationBody, s.RotationView, "Rotate secrets.", SETTINGS, ROTATION_S, is_open=True)
# A rotation needs the old value to prove itself.
TELL_VALUE = _post("/api/rotation/value", s.RotationValueBody, s.RotationView, "Tell the value in force.", SETTINGS, is_open=True)
NEW_API_KEY = _do("/api/api-key", s.ApiKeyView, "Make a new API key, shown this once.", SETTINGS)
TOKEN = _post("/api/tokens", s.TokenBody, s.TokenView, "An operator token for an API key.", ROOT)
TOKEN_CHECK = _get("/api/token-check", s.TokenCheckView, "Whether a token is accepted now.", ROOT)
# It only tightens: a leaked key signs no release then.
RETIRE_KEY = _post("/api/keys/retire", s.RetireKeyBody, s.RetiredKeyView, "Retire a signing key.", ROOT, TALK_S, is_open=True)
WEBHOOK = _get("/api/webhook", al.WebhookView, "Where alerts go.")
SET_WEBHOOK = _post("/api/webhook", al.WebhookBody, al.WebhookView, "Set where alerts go.", SETTINGS, TALK_S)
TEST_WEBHOOK = _do("/api/webhook/test", al.WebhookTestView, "Send one alert now.", SETTINGS, TALK_S, is_open=True)
REMOVE_WEBHOOK = _do("/api/webhook/remove", al.WebhookView, "Remove the webhook; alerts that wait are dropped.", SETTINGS, TALK_S)

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = tuple(row for row in globals().values() if isinstance(row, Endpoint))
"""In the order in which they are matched."""
