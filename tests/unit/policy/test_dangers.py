"""Operations that always ask, in commands."""

import pytest

from console.domain.calls.permission import Verdict, rank_of
from console.domain.errors import UsageProblem
from console.policy.dangers import danger_of, read_dangers
from console.policy.free_text_dangers import dangers_in_text
from tests.fakes.policy_disk import PolicyDisk
from tests.fakes.policy_world import context, dangers, rules, told


def name(line: str) -> str:
    argv = line.split()
    found = danger_of([one for one in dangers() if one.asks], {argv[0]}, argv)
    return found.name if found else ""


@pytest.mark.parametrize(
    "line",
    [
        "vault kv delete secret/x",
        "consul kv delete x",
        "etcdctl del x",
        "nomad job stop x",
        "rabbitmqctl delete_queue x",
        "kafka-topics.sh --bootstrap-server b --delete --topic x",
        "nats stream purge x",
        "rclone delete remote:bucket",
        "rclone -v --config x purge remote:bucket",
        "mc rm --recursive --force store/bucket",
        "s3cmd del s3://bucket/x",
        "restic forget --keep-last 1",
        "borg prune --keep-daily 7 repo",
        "kopia snapshot delete k1",
        "heroku ps:scale web=9",
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
        "vault kv get secret/x",
        "etcdctl get x",
        "nomad job status x",
        "kafka-topics.sh --list",
        "rclone ls remote:",
        "restic backup .",
        "restic snapshots",
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
        "npm init",
        "yarn init",
        "uv init",
        "npm run mail",
        "npx prettier .",
        "npx prisma generate",
        "uv run pytest",
        "poetry run batch",
        "python at.py",
        "systemctl status nginx",
        "psql -c select",
        "docker compose down",
        "docker run --rm x",
        "gh repo clone a/b",
        "gh auth status",
    ],
)
def test_what_does_not(line: str) -> None:
    assert name(line) == ""
    found = told(context(rules(allow=["shell(ls:*)"])), "shell", line)
    assert all(part.step != "danger" for part in found.parts), found


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


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("gh pr merge 12", "publishes"),
        ("terraform apply", "destroys"),
        ("gcloud run deploy x", "publishes"),
        ("dd if=x of=/dev/sda", "destroys"),
        ("shred /dev/sdb", "destroys"),
        ("aws ec2 run-instances --count 9", "spends"),
        ("stripe payouts create", "spends"),
        ("crontab -e", "persists"),
        ("chmod u+s a.txt", "escalates"),
        ("bash -c 'gh pr merge 1'", "publishes"),
        ("sh -c 'cd src && terraform destroy'", "destroys"),
        ("npx wrangler@4 deploy", "publishes"),
        ("npx --yes semantic-release", "publishes"),
        ("python -m twine upload dist/a.whl", "publishes"),
        ("uv run twine upload dist/a.whl", "publishes"),
        ("bun publish", "publishes"),
        ("gh release create v1", "publishes"),
        ("gh workflow run deploy.yml", "publishes"),
        ("gh auth token", "escalates"),
        ("mkfs.btrfs -f disk.img", "destroys"),
        ("mke2fs disk.img", "destroys"),
        ("cryptsetup luksFormat disk.img", "destroys"),
        ("zpool destroy tank", "destroys"),
        ("docker volume rm data", "destroys"),
        ("docker compose down -v", "destroys"),
        ("docker run --privileged x", "escalates"),
        ("docker run -v /:/host x", "escalates"),
        ("buildah push x", "publishes"),
        ("skopeo copy a b", "publishes"),
        ("heroku apps:destroy x", "destroys"),
        ("hcloud server delete x", "destroys"),
        ("supabase db reset", "destroys"),
        ("vercel --prod", "publishes"),
        ("aws s3 sync . s3://b --delete", "destroys"),
        ("aws s3 cp a s3://b", "publishes"),
        ('psql -c "DROP TABLE x"', "destroys"),
        ("mongosh --eval 'db.users.deleteMany({})'", "destroys"),
        ("systemctl enable x", "persists"),
        ("loginctl enable-linger", "persists"),
        ("sysctl -w kernel.x=1", "escalates"),
        ("stripe post /v1/refunds", "spends"),
        ("dd if=/dev/zero of=/dev/sda bs=1M", "destroys"),
    ],
)
def test_the_reason_names_the_danger_first(line: str, kind: str) -> None:
    found = told(context(rules(allow=["shell(ls:*)"])), "shell", line)
    assert (found.verdict, found.danger) == (Verdict.ASK, kind) or found.verdict is Verdict.DENY, found
    if found.verdict is Verdict.ASK:
        assert found.reason.startswith(f"{kind}: ") and found.as_json()["rank"] == rank_of(kind)


def test_a_denial_names_the_danger_first_as_well() -> None:
    disk = PolicyDisk()
    disk.others["/dev/sda1"] = "device"
    for line in ("mkfs.ext4 /dev/sda1", "wipefs -a /dev/sda1", "parted /dev/sda1 mklabel gpt"):
        found = told(context(rules(allow=["shell(ls:*)"]), disk), "shell", line)
        assert found.verdict is Verdict.DENY and found.reason.startswith("destroys: ") and found.rule == "devices", found


def test_the_worst_of_several_is_named() -> None:
    found = told(context(rules(allow=["shell(ls:*)"])), "shell", "crontab -l && gh pr merge 1 && terraform destroy")
    assert (found.rule, found.danger) == ("danger: change infrastructure", "destroys") and found.reason.startswith("destroys: ")


def test_a_device_is_a_file_that_would_be_written() -> None:
    disk = PolicyDisk()
    disk.others["/dev/sda"] = "device"
    disk.links["/workspace/drive"] = "/dev/sda"
    made = context(rules(allow=["shell(dd:*)", "file(read:/workspace/**)", "file(write:/workspace/**)"]), disk)
    for line in ("dd if=a.txt of=/dev/sda", "dd of=/dev/sda bs=1M if=a.txt", "dd if=a.txt of=drive", "shred /dev/sda"):
        found = told(made, "shell", line)
        [part] = [part for part in found.parts if part.step == "file" and part.action == "write"]
        assert (found.verdict, part.text, part.danger) == (Verdict.ASK, "write /dev/sda", "destroys"), line
    assert told(made, "shell", "dd if=a.txt of=b.txt bs=1k count=1").verdict is Verdict.ALLOW
    assert told(made, "shell", "dd if=/etc/shadow of=b.txt").verdict is Verdict.ASK
    denying = context(rules(allow=["shell(dd:*)"], deny=["file(write:/dev/**)"]), disk)
    assert told(denying, "shell", "dd of=/dev/sda").verdict is told(denying, "shell", "dd of=drive").verdict is Verdict.DENY


def test_a_class_that_is_not_known_is_refused() -> None:
    with pytest.raises(UsageProblem, match="class 'x' is not known"):
        read_dangers({"dangers": [{"name": "n", "why": "w", "program": "p", "class": "x"}]}, "own")
    [own] = read_dangers({"dangers": [{"name": "n", "why": "w", "program": "p"}]}, "own")
    assert (own.kind, own.words_first) == ("", "w")


@pytest.mark.parametrize(
    ("line", "kind"),
    [("git push origin main", "publishes"), ("scp a host:b", "publishes"), ("kill 1", "destroys")],
)
def test_what_a_rule_asks_about_is_named_by_its_danger_and_what_a_rule_allows_is_not_asked(line: str, kind: str) -> None:
    name = line.split()[0]
    asked = told(context(rules(allow=[], ask=[f"shell({name}:*)"])), "shell", line)
    assert (asked.verdict, asked.rule, asked.danger) == (Verdict.ASK, f"shell({name}:*)", kind) and asked.reason.startswith(f"{kind}: ")
    assert told(context(rules(allow=[f"shell({name}:*)"])), "shell", line).danger == ""
    assert all(one.danger.asks for one in dangers_in_text(dangers(), f"please do: {line}")), "a message that names it is no question"


@pytest.mark.parametrize("line", ["rsync -a a/ b/", "kill -0 1", "kill -l", "git push --dry-run", "git stash push"])
def test_a_question_about_what_reaches_and_ends_nothing_names_no_danger(line: str) -> None:
    name = line.split()[0]
    asked = told(context(rules(allow=[], ask=[f"shell({name}:*)"])), "shell", line)
    assert "push" not in asked.reason and asked.danger not in ("publishes", "destroys"), asked
    assert told(context(rules(allow=[], ask=["shell(rsync:*)"])), "shell", "rsync -a a/ host:b").danger == "publishes"


def test_an_own_list_says_asked_or_nothing() -> None:
    one = {"name": "n", "why": "w", "program": "p", "only": "sometimes"}
    with pytest.raises(UsageProblem, match="only is 'sometimes'"):
        read_dangers({"dangers": [one]}, "own")
