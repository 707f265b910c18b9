"""F5 with real mounts: what is mounted into a workspace, from its own file system too, is neither measured, nor changed, nor deleted."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.private_disk import run_on_a_small_disk


def test_a_workspace_with_mounts_in_it_is_emptied_around_them_and_says_why_it_stays(tmp_path: Path) -> None:
    said = run_on_a_small_disk(
        tmp_path / "disk",
        """
        from console.sandbox.workspace.disk_use import measure
        from console.sandbox.workspace.disposal import quarantine, sweep
        ws, precious = disk / "ws", disk / "precious"
        for folder in (ws / "c1" / "in" / "bound", ws / "c1" / "in" / "other", precious / "below"):
            folder.mkdir(parents=True)
        (ws / "c1" / "in" / "single").write_text("")
        for file in (precious / "file", precious / "below" / "file", precious / "one"):
            file.write_text("x" * 50000)
        subprocess.run(["mount", "--bind", str(precious), str(ws / "c1" / "in" / "bound")], check=True)
        subprocess.run(["mount", "--bind", str(precious / "one"), str(ws / "c1" / "in" / "single")], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "none", str(ws / "c1" / "in" / "other")], check=True)
        (ws / "c1" / "in" / "other" / "file").write_text("x")
        (precious / "below").chmod(0o500)
        opened = os.open(ws / "c1", os.O_RDONLY)
        used = measure(opened).bytes
        os.close(opened)
        quarantine(ws, "c1")
        done = [(one.gone, one.why) for one in sweep(ws, 30)]
        left = sorted(str(p.relative_to(disk)) for p in precious.rglob("*"))
        print(json.dumps({"used": used, "done": done, "left": left, "mode": (precious / "below").stat().st_mode & 0o777}))
        """,
    )
    assert said["left"] == ["precious/below", "precious/below/file", "precious/file", "precious/one"]
    assert said["used"] < 100_000 and said["mode"] == 0o500
    assert [gone for gone, _ in said["done"]] == [False] and "mounted" in said["done"][0][1]
