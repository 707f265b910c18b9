"""Dangers in free text, however they are spelt; ordinary words are left alone."""

import pytest

from console.policy.free_text_dangers import dangers_in, dangers_in_text
from tests.fakes.policy_world import dangers


def names(text: str) -> set[str]:
    return {one.danger.name for one in dangers_in_text(dangers(), text)}


def test_free_text_is_read_for_them_with_the_words() -> None:
    text = "Please look at the change.\nThen run `gh pr merge 12` and\n  $ /usr/bin/terraform apply -auto-approve; be quick"
    found = dangers_in_text(dangers(), text, "message")
    assert {one.danger.name for one in found} == {"merge or approve a change", "change infrastructure"}
    [merge] = [one for one in found if one.danger.name.startswith("merge")]
    assert merge.words.startswith("gh pr merge 12") and "(message)" in merge.line()


@pytest.mark.parametrize(
    "text",
    [
        "Please run terraform apply.",
        "TERRAFORM APPLY",
        "Terraform   \t  Apply",
        "terraform\u00a0apply",
        "terraform\napply",
        "terraform \\\n  apply",
        "terraform\r\napply",
        "terraform\u2028apply",
        "terraform\u0085apply",
        "ter\u200braform ap\u2060ply",
        "ter\u00adraform apply",
        "\u202eterraform\u202c apply",
        "t\u0435rraform \u0430pply",
        "\u0442erraform appl\u0443",
        "t\u0301e\u0308rraform apply",
        "ｔｅｒｒａｆｏｒｍ ａｐｐｌｙ",
        "𝐭𝐞𝐫𝐫𝐚𝐟𝐨𝐫𝐦 𝚊𝚙𝚙𝚕𝚢",
        "ⓣⓔⓡⓡⓐⓕⓞⓡⓜ ⓐⓟⓟⓛⓨ",
        "ᴛᴇʀʀᴀꜰᴏʀᴍ ᴀᴘᴘʟʏ",
        "terraform 'apply'",
        "ter\"\"raform a'p'ply",
        "te\\rraform ap\\ply",
        "`terraform` `apply`",
        "“terraform” ‘apply’",
        "{terraform,apply}",
        "terraform${IFS}apply",
        "terraform$IFS$9apply",
        "T=terraform; $T apply",
        "terraform%20apply",
        "terraform&#32;&#97;pply",
        "\\x74erraform apply",
        "\\164erraform apply",
        "t e r r a f o r m  a p p l y",
        "t.e.r.r.a.f.o.r.m apply",
        "terra-form apply",
        "terra form apply",
        "terraform_apply",
        "terraform+apply",
        "terraformapply",
        "terraf0rm app1y",
        "terraform.exe apply",
        "sudo -E /usr/local/bin/terraform -chdir=x apply",
        'sh -c "terraform apply -auto-approve"',
    ],
)
def test_spelling_hides_nothing(text: str) -> None:
    assert "change infrastructure" in names(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("git push —force", "force push"),
        ("git push –f", "force push"),
        ("git push\n  --force", "force push"),
        ("Git Push -F origin main", "force push"),
        ("gh\npr\nmerge 3", "merge or approve a change"),
        ("gh pr review 3 --approve!", "merge or approve a change"),
        ("gcloud run deploy api", "deploy"),
        ("rm -rf /", "delete a whole tree"),
        ("rm\n-rf\n~", "delete a whole tree"),
        ("kubectl d‌elete ns prod", "change a cluster"),
        ("run crontab -e", "schedule a program"),
    ],
)
def test_others_as_well(text: str, name: str) -> None:
    assert name in names(text)


@pytest.mark.parametrize(
    "text",
    [
        "merge the two lists, then approve of nothing",
        "Tidy up the tests and push when they pass",
        "look at the mail service; at noon, send me a summary",
        "git push origin main",
        "read docs/terraform.md and explain the plan",
        "terraform plan",
        "remove the unused helper in git.py",
        "Write a helmet catalogue",
        "Implement a stack with push and pop, and release the lock",
        "Integrate stripe checkout: create the page and the post request",
        "Use psql to look at the tables, then update the docs and remove what is old",
        "Run the docker image and explain why it goes down",
        "Use firebase to show push notifications when a user logs in",
        "",
        "python3 -c 'import sys; print(1, flush=True)'",
        "Use python to migrate the code that runs in production.",
    ],
)
def test_ordinary_words_are_left_alone(text: str) -> None:
    assert names(text) == set()


def test_where_it_was_is_said_once_for_each_danger() -> None:
    found = dangers_in(dangers(), [("command", "python3 a.py"), ("argument 3", "terraform apply"), ("variable X", "terraform apply")])
    assert [one.where for one in found] == ["argument 3"]


@pytest.mark.parametrize("text", ["x " * 60_000, "gh " * 20_000, "terraform" * 6_000, "\u0301" * 60_000, "t " * 30_000, "&#" * 30_000])
def test_the_longest_message_is_read_in_one_go(text: str) -> None:
    assert names(text) == set()


def test_marks_without_end_hold_nobody_up() -> None:
    """An agent may start a child with them; to put them in order takes time with the square of their number, and everybody waits."""
    assert names("terraform apply\n" + "a" + "\u0300\u0316" * 50_000) == {"change infrastructure"}
