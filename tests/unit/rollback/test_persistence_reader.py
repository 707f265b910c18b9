"""Every row of the table is seen; what an agent plants to mislead the look leads nowhere, blocks nothing and hides nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from console.rollback.persistence.differ import diff
from console.rollback.persistence.findings import Change, Entry, Place, Root, Snapshot, Where
from console.rollback.persistence.marks import READ_BYTES
from console.rollback.persistence.places import HOME, REPOSITORY, SYSTEM, WORKSPACE, on_path
from console.rollback.persistence.reader import Bounds, Reader
from console.rollback.persistence.tree import Tree

CONTENT = {
    "git": "[core]\n\tfsmonitor = ./evil\n",
    "scripts": '{"scripts": {"test": "./evil"}}',
    "mcp": '{"mcpServers": {"x": {"command": "evil"}}}',
}


def take(path: Path, where: Where = Where.WORKSPACE, *more: Place, seconds: float = 60.0, **bounds: int) -> Snapshot:
    return Reader(Bounds(time.monotonic() + seconds, **bounds)).take([Root("r", where, str(path), more)])


def by_path(snapshot: Snapshot) -> dict[str, Entry]:
    return {e.path: e for e in snapshot.entries}


def changes(before: Snapshot, after: Snapshot) -> dict[str, Change]:
    return {it.path: change for change, _, it in diff(before, after)}


def example(place: Place) -> str:
    pattern = place.pattern.replace("**", "deep/x").replace("*", "x")
    return f".git/{pattern}" if place in REPOSITORY else pattern


def plant(top: Path, place: Place, word: str = "") -> str:
    path = example(place)
    (top / path).parent.mkdir(parents=True, exist_ok=True)
    (top / path).write_text(CONTENT.get(place.part, "evil") if not word else CONTENT.get(place.part, "evil").replace("evil", word))
    (top / path).chmod(0o755)
    return path


@pytest.mark.parametrize("place", [*HOME, *SYSTEM, *WORKSPACE, *REPOSITORY], ids=lambda p: f"{p.where.value}-{p.pattern}")
def test_each_row_of_the_table_is_found_when_added_changed_and_removed_and_not_while_it_stays(tmp_path: Path, place: Place) -> None:
    if place.pattern == "hooks":
        (tmp_path / ".git").mkdir()
        (tmp_path / ".git" / "hooks").symlink_to("/x")
        assert by_path(take(tmp_path, place.where))[".git/hooks"].what == "link"
        return
    empty = take(tmp_path, place.where)
    assert empty.entries == () and empty.is_whole("r")
    path = plant(tmp_path, place)
    added = take(tmp_path, place.where)
    assert changes(empty, added) == {path: Change.ADDED}
    assert by_path(added)[path].kind in {p.kind for p in (*HOME, *SYSTEM, *WORKSPACE, *REPOSITORY)}
    assert changes(added, take(tmp_path, place.where)) == {}
    plant(tmp_path, place, "worse")
    assert changes(added, take(tmp_path, place.where)) == {path: Change.CHANGED}
    (tmp_path / path).unlink()
    assert changes(added, take(tmp_path, place.where)) == {path: Change.REMOVED}
    assert take(tmp_path, place.where).is_whole("r")


def test_what_counts_in_a_workspace_is_found_deep_in_it(tmp_path: Path) -> None:
    before = take(tmp_path)
    planted = set()
    for number, place in enumerate(p for p in (*WORKSPACE, *REPOSITORY) if p.pattern != "hooks"):
        top = f"repos/{number}/src"
        (tmp_path / top).mkdir(parents=True)
        planted.add(f"{top}/{plant(tmp_path / top, place)}")
    assert changes(before, take(tmp_path)) == dict.fromkeys(planted, Change.ADDED)


def test_a_workspace_is_also_a_home(tmp_path: Path) -> None:
    before = take(tmp_path)
    planted = {plant(tmp_path, place) for place in HOME}
    after = take(tmp_path)
    assert changes(before, after) == dict.fromkeys(planted, Change.ADDED)
    assert "HOME" in by_path(after)[".bashrc"].runs and "your next shell there" in by_path(after)[".envrc"].runs


def test_ordinary_work_is_not_listed(tmp_path: Path) -> None:
    repo = tmp_path / "repos" / "x"
    (repo / ".git" / "hooks").mkdir(parents=True)
    (repo / ".git" / "hooks" / "pre-commit.sample").write_text("#!/bin/sh")
    (repo / ".git" / "HEAD").write_text("ref: refs/heads/main")
    (repo / ".git" / "config").write_text(
        '[core]\n\tbare = false\n[remote "origin"]\n\turl = https://h/clean.git\n\tfetch = +refs/*:refs/*\n'
    )
    (repo / "package.json").write_text('{"name": "x", "dependencies": {}}')
    for name in ("main.py", "Makefile", "notes.md", "config", "path.txt", "hooks"):
        (repo / name).write_text("x")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "not-executable").write_text("x")
    assert take(tmp_path).entries == ()


def test_the_parts_of_a_bare_repository_that_nobody_called_git_are_found(tmp_path: Path) -> None:
    bare = tmp_path / "data" / "innocent"
    (bare / "objects").mkdir(parents=True)
    (bare / "HEAD").write_text("ref: refs/heads/main")
    (bare / "config").write_text("[core]\n\tfsmonitor = ./evil\n")
    (bare / "hooks").mkdir()
    (bare / "hooks" / "post-checkout").write_text("evil")
    assert set(by_path(take(tmp_path))) == {"data/innocent/config", "data/innocent/hooks/post-checkout"}


def test_an_object_folder_that_only_looks_like_gits_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "objects").mkdir()
    (tmp_path / "HEAD").write_text("")
    (tmp_path / "config").write_text("")
    (tmp_path / "objects" / "conftest.py").write_text("evil")
    assert "objects/conftest.py" in by_path(take(tmp_path))


@pytest.mark.parametrize("kind", ["fifo", "socket", "device", "link", "folder", "sparse", "hard link", "dangling", "loop"])
def test_a_shell_start_file_that_is_no_file_is_listed_and_never_opened(tmp_path: Path, kind: str) -> None:
    before = take(tmp_path)
    path, secret = tmp_path / ".bashrc", tmp_path.parent / f"{tmp_path.name}-secret"
    secret.write_text("secret")
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        os.mknod(path, 0o140600)
    elif kind == "device":
        os.mknod(path, 0o020666, os.makedev(1, 5))
    elif kind == "link":
        path.symlink_to(secret)
    elif kind == "dangling":
        path.symlink_to("nowhere")
    elif kind == "loop":
        path.symlink_to(".bashrc")
    elif kind == "hard link":
        os.link(secret, path)
    elif kind == "sparse":
        with path.open("wb") as file:
            file.truncate(1 << 30)
    else:
        path.mkdir()
    after = take(tmp_path)
    assert after.is_whole("r")
    assert changes(before, after) == ({} if kind == "folder" else {".bashrc": Change.ADDED})
    if kind in ("link", "dangling", "loop", "fifo", "socket", "device"):
        assert by_path(after)[".bashrc"].text == b""


def test_a_file_too_large_to_read_is_changed_when_its_stamp_changes(tmp_path: Path) -> None:
    path = tmp_path / ".bashrc"
    path.write_bytes(b"x" * (READ_BYTES + 1))
    before = take(tmp_path)
    assert changes(before, take(tmp_path)) == {}
    time.sleep(0.02)
    with path.open("r+b") as file:
        file.write(b"y")
    os.utime(path, (1, 1))
    assert changes(before, take(tmp_path)) == {".bashrc": Change.CHANGED}


def test_a_file_made_executable_is_changed(tmp_path: Path) -> None:
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    hook = tmp_path / ".git" / "hooks" / "pre-push"
    hook.write_text("x")
    hook.chmod(0o644)
    before = take(tmp_path)
    hook.chmod(0o755)
    assert changes(before, take(tmp_path)) == {".git/hooks/pre-push": Change.CHANGED}


@pytest.mark.parametrize("folder", [".git", ".claude", ".vscode", ".git/hooks", ".config/fish", ".config"])
def test_a_folder_replaced_by_a_link_is_listed_and_not_followed(tmp_path: Path, folder: str) -> None:
    elsewhere = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    (elsewhere / "fish").mkdir(parents=True)
    for name in ("settings.json", "config.fish", "pre-commit", "fish/config.fish"):
        (elsewhere / name).write_text("outside")
    before = take(tmp_path)
    (tmp_path / folder).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / folder).symlink_to(elsewhere)
    after = take(tmp_path)
    assert after.is_whole("r"), after.roots
    assert changes(before, after) == {folder: Change.ADDED}
    assert by_path(after)[folder].what == "link" and by_path(after)[folder].text == b""


def test_hostile_names_are_kept_apart_and_come_back_from_json(tmp_path: Path) -> None:
    names = [b"a\nb", b"\xff\xfe", "‮gnp".encode(), b"\x1b[31m", b"a\\nb", b"-rf", b"x" * 250]
    for name in names:
        (Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name)))).mkdir()
        with open(os.path.join(os.fsencode(tmp_path), name, b"conftest.py"), "w") as file:
            file.write("evil")
    found = take(tmp_path)
    assert {os.fsencode(e.path) for e in found.entries} == {n + b"/conftest.py" for n in names}


def test_loops_of_links_and_deep_trees_end_and_are_said(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "up").symlink_to("..")
    assert take(tmp_path).is_whole("r")
    deep = tmp_path
    for _ in range(60):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "conftest.py").write_text("evil")
    seen = take(tmp_path)
    assert not seen.is_whole("r") and "deeper than" in seen.roots[0].why


def test_every_bound_ends_the_look_and_is_said(tmp_path: Path) -> None:
    for n in range(300):
        (tmp_path / f"{n}.pth").write_text("evil")
    assert "more than 100 such files" in take(tmp_path, found=100).roots[0].why
    assert "more than 100 names" in take(tmp_path, names=100).roots[0].why
    assert "out of time" in take(tmp_path, seconds=-1).roots[0].why
    assert len(take(tmp_path, found=100).entries) == 100


def test_a_folder_swapped_for_a_link_while_it_is_read_leads_nowhere(tmp_path: Path) -> None:
    """Many looks while another thread swaps a folder for a link to a secret: nothing of the secret is ever seen."""
    import threading

    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "settings.json").write_text("secret outside")
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode" / "settings.json").write_text("inside")
    (tmp_path / "link").symlink_to(outside)
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            os.rename(tmp_path / ".vscode", tmp_path / "aside")
            os.rename(tmp_path / "link", tmp_path / ".vscode")
            os.rename(tmp_path / ".vscode", tmp_path / "link")
            os.rename(tmp_path / "aside", tmp_path / ".vscode")
            time.sleep(0.002)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        seen = [take(tmp_path) for _ in range(60)]
    finally:
        over.set()
        thread.join()
    assert not any(b"outside" in e.text for s in seen for e in s.entries)
    assert any(b"inside" in e.text for s in seen for e in s.entries)


# --- a home


def test_links_inside_a_home_are_followed_and_those_out_of_it_are_not(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    (home / "dotfiles" / "fish").mkdir(parents=True)
    other.mkdir()
    (home / ".config").mkdir()
    (home / "dotfiles" / "bashrc").write_text("mine")
    (home / "dotfiles" / "fish" / "config.fish").write_text("mine")
    (other / "zshrc").write_text("theirs")
    (home / ".bashrc").symlink_to("dotfiles/bashrc")
    (home / ".config" / "fish").symlink_to("../dotfiles/fish")
    (home / ".zshrc").symlink_to(other / "zshrc")
    (home / ".profile").symlink_to("../other/zshrc")
    before = take(home, Where.HOME)
    found = by_path(before)
    assert set(found) == {".bashrc", ".config/fish/config.fish", ".zshrc", ".profile"}
    assert found[".bashrc"].text == b"mine" and found[".zshrc"].text == b"" and found[".profile"].text == b""
    assert "not looked at" in found[".zshrc"].note
    (home / "dotfiles" / "bashrc").write_text("mine\nevil")
    (home / "dotfiles" / "fish" / "config.fish").write_text("evil")
    assert changes(before, take(home, Where.HOME)) == {".bashrc": Change.CHANGED, ".config/fish/config.fish": Change.CHANGED}


def test_a_folder_that_is_closed_to_us_is_known_by_its_stamp(tmp_path: Path) -> None:
    spool = tmp_path / "var" / "spool" / "cron" / "crontabs"
    spool.mkdir(parents=True)
    from console.rollback.persistence import tree as trees

    real = trees.Tree.listing

    def closed(self: trees.Tree, parts: trees.Parts) -> object:
        if parts[-1:] == ("crontabs",):
            raise PermissionError(13, "Permission denied")
        return real(self, parts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees.Tree, "listing", closed)
        before = take(tmp_path, Where.SYSTEM)
        assert before.is_whole("r")
        assert changes(before, take(tmp_path, Where.SYSTEM)) == {}
        (spool / "ann").write_text("* * * * * evil")
        assert changes(before, take(tmp_path, Where.SYSTEM)) == {"var/spool/cron/crontabs": Change.CHANGED}


def test_further_folders_of_the_path_are_looked_in(tmp_path: Path) -> None:
    rows = on_path([f"{tmp_path}/.cargo/bin", f"{tmp_path}/.local/bin", "/usr/bin", f"{tmp_path}/../x", ""], str(tmp_path))
    assert [r.pattern for r in rows] == [".cargo/bin/*"]
    (tmp_path / ".cargo" / "bin").mkdir(parents=True)
    before = take(tmp_path, Where.HOME, *rows)
    (tmp_path / ".cargo" / "bin" / "git").write_text("evil")
    (tmp_path / ".cargo" / "bin" / "git").chmod(0o755)
    assert changes(before, take(tmp_path, Where.HOME, *rows)) == {".cargo/bin/git": Change.ADDED}


def test_what_is_no_plain_file_is_not_even_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    tree = Tree(str(tmp_path), Where.WORKSPACE)
    try:
        with pytest.raises(OSError, match="not a plain file"):
            tree.read(("fifo",), 10)
    finally:
        tree.close()


def test_a_root_that_is_not_there_is_not_whole(tmp_path: Path) -> None:
    assert not take(tmp_path / "gone").is_whole("r")


def test_a_hundred_thousand_files_are_looked_through(tmp_path: Path, full_counts: bool) -> None:
    for n in range(100 if full_counts else 1):
        (tmp_path / str(n)).mkdir()
        for m in range(1000):
            os.close(os.open(tmp_path / str(n) / str(m), os.O_CREAT | os.O_WRONLY))
    (tmp_path / "0" / "conftest.py").write_text("evil")
    seen = take(tmp_path)
    assert seen.is_whole("r") and set(by_path(seen)) == {"0/conftest.py"}
