"""Which names never pass, and which read as a secret's: whatever is in doubt is one."""

from __future__ import annotations

import pytest

from console.domain.errors import ConsoleError, Denied, UsageProblem
from console.domain.process.environment import check_agent_type, checked_name, holds_secret, looks_secret

SECRETS = [
    "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "GITHUB_TOKEN", "GH_PAT", "ANTHROPIC_API_KEY", "OPENAI_APIKEY", "PGPASSWORD", "DB_PASS",
    "MYSQL_PWD", "NPM_AUTH", "SENTRY_DSN", "GPG_PASSPHRASE", "TLS_CERT", "SSH_PRIVATE_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "COOKIE_JAR",
    "SLACK_WEBHOOK_URL", "AZURE_CONNECTION_STRING", "AZURE_CONNECTIONSTRING", "API_KEY2", "KEY_1", "TOKEN2", "MYSECRETS", "aws_secret",
]  # fmt: skip


@pytest.mark.parametrize("name", SECRETS)
def test_a_secrets_name_is_known(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize("name", ["LANG", "TERM", "ANTHROPIC_BASE_URL", "AWS_REGION", "NODE_ENV", "MONKEY_BARS", "PASSENGERS", "AUTHOR"])
def test_a_plain_name_is_plain(name: str) -> None:
    assert not looks_secret(name)


@pytest.mark.parametrize(
    "value",
    [
        "postgres://ann:hunter2@db/x", "redis://:hunter2@h", "https://0123456789abcdef@github.com/x",
        "-----BEGIN RSA PRIVATE KEY-----\nx",
        "AKIAIOSFODNN7EXAMPLE", "x ghp_0123456789abcdef0123", "sk-0123456789abcdef0", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.x",
        "Server=h;Password=x",
        "token=abc",
    ],
)  # fmt: skip
def test_a_value_that_holds_a_secret_is_known(value: str) -> None:
    assert holds_secret(value)


@pytest.mark.parametrize(
    "value", ["", "https://example.org/x?y=1", "us-east-1", "http://h:8080/a@b", "ssh://git@example.org/x", "x" * 100_000]
)
def test_a_plain_value_is_plain(value: str) -> None:
    assert not holds_secret(value)


@pytest.mark.parametrize(
    "name",
    ["PATH", "LD_PRELOAD", "GCONV_PATH", "LOCPATH", "SSH_AUTH_SOCK", "DOCKER_HOST", "HTTPS_PROXY", "AGENT_AUTH_TOKEN", "WATCHFLOOR_X"],
)
def test_names_that_are_ours_or_steer_are_nobodys(name: str) -> None:
    with pytest.raises(Denied):
        checked_name(name)


@pytest.mark.parametrize("name", ["", "a", "A=B", "A\n", "A" * 65])
def test_malformed_names_are_refused(name: str) -> None:
    with pytest.raises(UsageProblem):
        checked_name(name)


def test_types_are_short_plain_words() -> None:
    assert [check_agent_type(name) for name in ("", "claude-code", "bot.v2_a")] == ["", "claude-code", "bot.v2_a"]
    for name in ("A", "-a", "a b", "a\n", "../x", "x" * 64, "\u0430"):
        with pytest.raises(ConsoleError):
            check_agent_type(name)
