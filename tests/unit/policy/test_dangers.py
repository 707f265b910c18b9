"""Operations that always ask, in commands."""

import pytest

from console.domain.errors import UsageProblem
from console.policy.dangers import danger_of, read_dangers
from tests.fakes.policy_world import dangers


def name(line: str) -> str:
    argv = line.split()
    found = danger_of(dangers(), {argv[0]}, argv)
    return found.name if found else ""


@pytest.mark.parametrize(
    "line",
    [
        "gh pr merge 12",
        "gh pr merge --squash 12",
        "gh -R a/b pr merge 1",
        "gh pr review 12 --approve",
        "gh pr review -a 1",
        "gh repo delete x",
        "gh api -X PUT repos/a/b/pulls/1/merge",
        "gcloud run deploy x",
        "gcloud --project p functions deploy f",
        "gcloud compute instances delete x",
        "gcloud projects add-iam-policy-binding p",
        "terraform apply",
        "terraform -chdir=x apply -auto-approve",
        "terraform destroy",
        "tofu apply",
        "git push --force",
        "git push -f origin main",
        "git push origin +main",
        "git push --force-with-lease=x",
        "git push origin :main",
        "git push --mirror",
        "git reset --hard HEAD~1",
        "git clean -fdx",
        "git filter-branch x",
        "kubectl delete pod x",
        "kubectl -n x apply -f y",
        "helm upgrade x",
        "aws s3 rb s3://x",
        "aws ec2 terminate-instances x",
        "npm publish",
        "docker push x",
        "dd if=x of=/dev/sda",
        "mkfs.ext4 /dev/sda",
        "rm -rf /",
        "rm -rf ~",
        "rm -rf .",
        "crontab -e",
        "shutdown now",
    ],
)
def test_what_asks(line: str) -> None:
    assert name(line)


@pytest.mark.parametrize(
    "line",
    [
        "gh pr list",
        "gh pr view 12",
        "git push",
        "git push origin main",
        "git status",
        "gcloud info",
        "terraform plan",
        "kubectl get pods",
        "rm a.txt",
        "dd if=a of=b",
        "npm test",
    ],
)
def test_what_does_not(line: str) -> None:
    assert name(line) == ""


def test_own_lists_are_read_strictly() -> None:
    [own] = read_dangers({"dangers": [{"name": "n", "why": "w", "program": "deployctl", "words": "now"}]}, "mine")
    assert danger_of([own], {"deployctl"}, ["deployctl", "--x", "now"]) is own
    one = {"name": "n", "why": "w", "program": "p"}
    wrongs: list[object] = [[], {"dangers": [{"name": "n"}]}, {"dangers": [{**one, "typo": "x"}]}, {"dangers": ["x"]}]
    for wrong in wrongs:
        with pytest.raises(UsageProblem, match="mine"):
            read_dangers(wrong, "mine")
    with pytest.raises(UsageProblem, match="pattern"):
        read_dangers({"dangers": [{"name": "n", "why": "w", "program": "p", "any": "("}]}, "mine")
