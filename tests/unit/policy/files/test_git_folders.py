"""Which folders git takes for a repository; what that protects: tests/unit/policy/git/test_git_calls.py."""

from console.policy.files.git_folders import is_repository, repository_around
from tests.fakes.policy_disk import PolicyDisk


def test_what_makes_a_folder_a_repository() -> None:
    disk = PolicyDisk()
    disk.folders |= {"/workspace/bare", "/workspace/bare/objects"}
    assert not is_repository("/workspace/bare", disk)
    disk.files.add("/workspace/bare/HEAD")
    assert not is_repository("/workspace/bare", disk) and is_repository("/workspace/bare", disk, "refs")
    assert is_repository("/workspace/bare", disk, "commondir"), "a linked worktree's folder has the others elsewhere"
    assert repository_around("/workspace/bare/refs/heads", disk) == "/workspace/bare"
    assert repository_around("/workspace/bare/config", disk) == "" == repository_around("/x", disk)
    disk.folders.add("/workspace/bare/refs")
    assert repository_around("/workspace/bare/hooks/pre-commit", disk) == "/workspace/bare"
