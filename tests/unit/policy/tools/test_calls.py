"""What one call of a tool does: its statement, its server, the words of its name."""

from __future__ import annotations

import json

import pytest

from console.domain.calls.permission import Verdict
from console.policy.judge import Call, tool_named
from console.policy.scopes import Scope
from console.policy.tools.calls import does
from tests.fakes.policy_world import context, rules, told, tools

DB, WRITE, MAIL, MONEY, DEPLOY, API = (
    Scope.READ_DB,
    Scope.WRITE_DB,
    Scope.SEND_EMAIL,
    Scope.SPEND_MONEY,
    Scope.DEPLOY,
    Scope.CALL_API,
)


def needs(name: str, argument: str = "", **detail: object) -> set[Scope]:
    return set(tool_named(Call(name, argument, detail=json.dumps(detail) if detail else ""), tools()).scopes)


@pytest.mark.parametrize(
    "name",
    [
        "query_db",
        "sql_query",
        "execute_sql",
        "mcp__postgres__query",
        "mcp__supabase__execute_sql",
        "mcp__prod-db__run",
        "sql_db_query",
        "runSQL",
    ]
    + [
        "mcp__neon__run_sql",
        "mcp__bigquery__execute_sql",
        "postgres.query",
        "mcp_mysql_mysql_query",
        "mcp__acme__execute_query",
        "MySqlQuery",
    ],
)
def test_a_statement_decides_for_databases(name: str) -> None:
    assert needs(name, "SELECT * FROM t") == {DB} == needs(name, sql="SELECT 1")
    assert needs(name, "DELETE FROM payroll") == {WRITE} == needs(name, sql="DROP TABLE x")
    assert needs(name, "INSERT INTO a SELECT * FROM b") == {DB, WRITE}
    assert WRITE in needs(name, "CALL something()"), "what cannot be read is a write"


@pytest.mark.parametrize(
    ("name", "scopes"),
    [
        ("mcp__postgres__list_tables", {DB}),
        ("mcp__supabase__list_migrations", {DB}),
        ("mcp__supabase__apply_migration", {WRITE}),
        ("mcp__supabase__deploy_edge_function", {DEPLOY, WRITE}),
        ("mcp__mongodb__find", {DB}),
        ("mcp__mongodb__delete-many", {WRITE}),
        ("mcp__redis__hset", {WRITE}),
        ("mcp__redis__hgetall", {DB}),
        ("update_db", {WRITE}),
        ("send_mail", {MAIL}),
        ("gmail_send", {MAIL}),
        ("sendEmail", {MAIL}),
        ("GMAIL_SEND_EMAIL", {MAIL}),
        ("mcp__gmail__send_email", {MAIL}),
        ("mcp__gmail__modify_email", {MAIL}),
        ("mcp__claude_ai_Gmail__gmail_create_draft", set()),
        ("mcp__gmail__send_draft", {MAIL}),
        ("mcp__gmail__search_emails", {API}),
        ("mcp__gmail__get_draft", {API}),
        ("mcp__slack__slack_post_message", {MAIL}),
        ("mcp__slack__slack_list_channels", {API}),
        ("mcp__slack__conversations_add_message", {MAIL}),
        ("mcp__resend__send-email", {MAIL}),
        ("draft_email", set()),
        ("mcp__stripe__create_refund", {MONEY}),
        ("mcp__stripe__create_payment_link", {MONEY}),
        ("mcp__stripe__finalize_invoice", {MONEY}),
        ("mcp__stripe__list_invoices", {API}),
        ("mcp__stripe__retrieve_balance", {API}),
        ("mcp__paypal__pay_order", {MONEY}),
        ("refund_payment", {MONEY}),
        ("transfer_funds", {MONEY}),
        ("mcp__cloud-run__deploy-local-folder", {DEPLOY}),
        ("mcp__cloud-run__list-services", {API}),
        ("mcp__cloud-run__get_service_log", {API}),
        ("mcp__kubernetes__pods_delete", {DEPLOY}),
        ("mcp__kubernetes__pods_exec", {DEPLOY}),
        ("mcp__kubernetes__pods_list_in_namespace", {API}),
        ("mcp__kubernetes__resources_create_or_update", {DEPLOY}),
        ("mcp__kubernetes__kubectl_apply", {DEPLOY}),
        ("mcp__kubernetes__kubectl_get", {API}),
        ("mcp__kubernetes__helm_install", {DEPLOY}),
        ("mcp__github__merge_pull_request", {DEPLOY}),
        ("mcp__vercel__deploy_to_vercel", {DEPLOY}),
        ("mcp__render__get_deploy", {API}),
        ("mcp__github__list_issues", {Scope.RUN_CODE, API}),
        ("send_email call", {MAIL}),
        ("mcp__stripe__create_refund call", {MONEY}),
        ("write_file call", {Scope.RUN_CODE, API}),
        ("mcp__x__y", {Scope.RUN_CODE, API}),
    ],
)
def test_names_of_real_servers(name: str, scopes: set[Scope]) -> None:
    assert needs(name) == scopes


@pytest.mark.parametrize(
    "name", ["get_or_create_payment", "list_and_send_emails", "read_email_then_delete", "mcp__stripe__get_paid_cancel_subscription"]
)
def test_a_verb_that_reads_does_not_hide_another(name: str) -> None:
    assert needs(name) & {MAIL, MONEY}


def test_a_call_makes_itself_no_milder() -> None:
    call = Call("mcp__postgres__query", "", action="read", detail='{"sql": "DELETE FROM t", "action": "read"}')
    assert tool_named(call, tools()).action == "write"
    assert tool_named(Call("query_db", "SELECT 1", action="write"), tools()).action == "write"
    assert tool_named(Call("mcp__mongodb__aggregate", "", detail='{"pipeline": [{"$out": "x"}]}'), tools()).action == "write"


def test_the_reason_says_what_it_does() -> None:
    assert does(tool_named(Call("mcp__stripe__create_refund", ""), tools()), tools()) == "spends: it moves money"
    assert "DELETE" in does(tool_named(Call("query_db", "DELETE FROM t"), tools()), tools())
    assert does(tool_named(Call("mcp__x__y", ""), tools()), tools()) == ""


@pytest.mark.parametrize(
    ("danger", "names"),
    [
        ("spends", "create_payment_link stripe_create_refund stripe_cancel_subscription send_invoice create_payout"),
        ("spends", "pay_invoice mcp__paypal__create_order"),
        ("spends", "mcp__stripe__create_customer mcp__square__create_payment mcp__alpaca__place_stock_order"),
        ("spends", "createPaymentIntent transfer_funds"),
        ("publishes", "send_mail gmail_send send_email mcp__gmail__send_draft mcp__slack__slack_post_message"),
        ("publishes", "sendMail send_sms mcp__resend__send-email"),
        ("publishes", "deploy_to_vercel merge_pull_request mcp__kubernetes__kubectl_apply run_workflow"),
    ],
)
def test_a_tool_of_money_mail_or_deployment_asks_with_its_danger(danger: str, names: str) -> None:
    made = context(rules(allow=["shell(ls:*)"]))
    for name in names.split():
        found = told(made, name, "{}")
        assert (found.verdict, found.danger) == (Verdict.ASK, danger), name
        assert found.reason.startswith(f"{danger}: ") and found.rule.startswith("danger: "), name


def test_what_only_reads_or_drafts_is_no_danger() -> None:
    made = context(rules(allow=["shell(ls:*)"]))
    for name in ("list_payment_intents", "mcp__stripe__retrieve_balance", "create_draft", "mcp__gmail__search_emails", "get_deployment"):
        assert told(made, name, "{}").danger == "", name
    assert told(made, "execute_sql", "SELECT 1").danger == "" and told(made, "execute_sql", "DROP TABLE x").danger == "destroys"


@pytest.mark.parametrize(
    ("detail", "more"),
    [
        ({"sql": "DROP TABLE x"}, {WRITE}),
        ({"query": "delete from payroll where 1=1"}, {WRITE}),
        ({"statement": "-- harmless\nUPDATE payroll SET pay = 0"}, {WRITE}),
        ({"queries": ["select a from b", "truncate b"]}, {WRITE, DB}),
        ({"sql": "select a from b"}, {DB}),
        ({"query": "select a phone that is good"}, set()),
        ({"query": "with friends like these"}, set()),
        ({"text": "DROP TABLE x"}, set()),
    ],
)
def test_sql_in_a_call_of_a_server_of_any_name_counts(detail: dict[str, object], more: set[Scope]) -> None:
    found = needs("mcp__prod__ask", "", **detail)
    assert {API, Scope.RUN_CODE} <= found and more <= found and (WRITE in found) == (WRITE in more), found
    assert not more & {WRITE} or told(context(rules(allow=["shell(ls:*)"])), "mcp__prod__ask", json.dumps(detail)).danger == "destroys"


def test_sql_that_a_search_is_about_is_no_call_of_a_database() -> None:
    assert needs("WebSearch", "", query="delete from payroll where 1=1") == {API}
