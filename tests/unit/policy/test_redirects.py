"""A redirect is a read or a write of a real file, or one descriptor becoming another; what is not certain is denied."""

import pytest

from console.domain.calls.permission import Verdict
from console.policy.files.paths import FileRules
from console.policy.rules.verdicts import Part, Redirect
from console.policy.shell.check import judge_redirect
from console.policy.shell.lines import simple_commands
from tests.fakes.policy_disk import PolicyDisk
from tests.fakes.policy_world import rules

RULES = FileRules(rules(allow=["file(read:${WORKSPACE}/**)", "file(write:${WORKSPACE}/**)"], deny=["file(write:/etc/**)"]))


def judged(redirect: str) -> tuple[Part, list[Redirect]]:
    [simple] = simple_commands(f"cat {redirect}")
    [target] = simple.targets
    return judge_redirect(target, "/workspace", RULES, PolicyDisk())


@pytest.mark.parametrize(
    ("redirect", "verdict", "moved"),
    [
        ("< a.txt", "allow", [Redirect(0, "/workspace/a.txt", "read")]),
        ("> a.txt", "allow", [Redirect(1, "/workspace/a.txt", "write")]),
        ("2>> a.txt", "allow", [Redirect(2, "/workspace/a.txt", "append")]),
        ("&> a.txt", "allow", [Redirect(1, "/workspace/a.txt", "write"), Redirect(2, mode="copy", source=1)]),
        ("2>&1", "allow", [Redirect(2, mode="copy", source=1)]),
        ("2>&-", "allow", [Redirect(2, mode="close")]),
        ("> /etc/cron.d/x", "deny", [Redirect(1, "/etc/cron.d/x", "write")]),
        ("> /elsewhere", "ask", [Redirect(1, "/elsewhere", "write")]),
        ("> *.txt", "deny", []),
        ("> ~/x", "deny", []),
        (">& 7", "deny", []),
    ],
)
def test_what_becomes_of_descriptors_and_whether_it_may(redirect: str, verdict: str, moved: list[Redirect]) -> None:
    part, found = judged(redirect)
    assert (part.verdict, part.step, found) == (Verdict(verdict), "redirect", moved)
