"""F1, F3, F4: only plain files below the workspace; links, hard links, FIFOs, devices, mounts and odd names lead nowhere."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from console.domain.errors import Denied, NotFound, UsageProblem
from console.rollback import safe_open
from console.rollback.safe_open import open_beneath, open_regular, openat2, openat2_works, relative_parts, walk, workspace


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("a", ("a",)),
        ("a/b.txt", ("a", "b.txt")),
        ("./a//b/./c", ("a", "b", "c")),
        ("a\nb", ("a\nb",)),
        ("-rf", ("-rf",)),
        ("...", ("...",)),
        ("~/.bashrc", ("~", ".bashrc")),
        ("/state/workspaces/c1/x", ("x",)),
        ("/state//workspaces/./c1/d/x", ("d", "x")),
        ("ä" * 127, ("ä" * 127,)),
    ],
)
def test_plain_paths_become_components(path: str, parts: tuple[str, ...]) -> None:
    assert relative_parts(path, ("/state/workspaces/c1",)) == parts


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "/",
        "..",
        "../c2/x",
        "a/../../x",
        "a/..",
        "/etc/passwd",
        "/state/workspaces/c1",
        "/state/workspaces/c1-evil/x",
        "/state/workspaces/c2/x",
        "/state/workspaces/c1/../c2/x",
        "/proc/self/fd/3",
        "a\0b",
        "\ud800",
        "x" * 300,
        "ä" * 128,
        "a/" * 3000,
    ],
)
def test_everything_else_is_denied_in_words(path: str) -> None:
    with pytest.raises(Denied) as caught:
        relative_parts(path, ("/state/workspaces/c1",))
    assert caught.value.what and caught.value.remedy and len(caught.value.what) < 600


def test_no_root_means_no_absolute_path() -> None:
    for roots in ((), ("",), ("/",)):
        with pytest.raises(Denied):
            relative_parts("/etc/passwd", roots)


@pytest.mark.parametrize(
    "context_id", ["x/../../precious", "y /precious2", "$(id)", "-rf", "a\0", "a" * 300, ".", "..", "", "c\u0131", "C1", "c1\n"]
)
def test_hostile_context_ids_are_refused(workspaces: Path, context_id: str) -> None:
    with pytest.raises(UsageProblem), workspace(workspaces, context_id):
        pass


def test_a_missing_workspace_and_a_link_in_its_place_are_refused(workspaces: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound), workspace(workspaces, "nobody"):
        pass
    (workspaces / "linked").symlink_to(tmp_path)
    with pytest.raises(Denied), workspace(workspaces, "linked"):
        pass


Opener = Callable[[int, tuple[str, ...], int], int]


@pytest.fixture(params=["openat2", "walk"])
def opener(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Opener:
    """Both ways must hold alike; `open_beneath` is made to use this one."""
    if request.param == "walk":
        monkeypatch.setattr(safe_open, "openat2_works", lambda: False)
        return walk
    assert openat2_works()
    return openat2


@pytest.fixture
def root(ws: Path) -> Iterator[int]:
    fd = os.open(ws, os.O_PATH | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def test_a_plain_file_is_read(opener: Opener, root: int, ws: Path) -> None:
    (ws / "d" / "x").write_text("hello")
    fd = open_regular(root, ("d", "x"))
    assert fd is not None
    assert os.read(fd, 10) == b"hello"
    assert os.get_inheritable(fd) is False
    os.close(fd)
    assert open_regular(root, ("d", "nothing")) is None
    assert open_regular(root, ("nowhere", "x")) is None


@pytest.mark.parametrize("parts", [("link",), ("dirlink", "secret"), ("d", "deep", "secret"), ("magic",)])
def test_links_lead_nowhere(opener: Opener, root: int, ws: Path, tmp_path: Path, parts: tuple[str, ...]) -> None:
    (tmp_path / "secret").write_text("canary")
    (ws / "link").symlink_to(tmp_path / "secret")
    (ws / "dirlink").symlink_to(tmp_path)
    (ws / "d" / "deep").symlink_to("../..")
    (ws / "magic").symlink_to("/proc/self/exe")
    with pytest.raises(Denied):
        open_regular(root, parts)


def test_a_link_that_stays_inside_is_refused_as_well(opener: Opener, root: int, ws: Path) -> None:
    (ws / "x").write_text("hello")
    (ws / "inner").symlink_to("x")
    with pytest.raises(Denied):
        open_regular(root, ("inner",))


def test_dot_dot_and_absolute_never_escape(root: int) -> None:
    for parts in (("..", "c2"), ("/etc", "passwd"), ("d", "..", "..", "c2")):
        with pytest.raises(OSError) as caught:
            open_beneath(root, parts, os.O_PATH)
        assert caught.value.errno == errno.EXDEV


def test_hard_links_fifos_sockets_devices_and_folders_are_refused_at_once(opener: Opener, root: int, ws: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("canary")
    os.link(tmp_path / "outside", ws / "hard")
    os.mkfifo(ws / "fifo")
    with socket.socket(socket.AF_UNIX) as plug:
        plug.bind(str(ws / "plug"))
    names = ["hard", "fifo", "plug", "d"]
    if os.geteuid() == 0:
        os.mknod(ws / "null", 0o666 | 0o020000, os.makedev(1, 3))
        names.append("null")
    said = []
    for name in names:
        with pytest.raises(Denied) as caught:
            open_regular(root, (name,))
        said.append(caught.value.what)
    for words, what in zip(["hard links", "FIFO", "socket", "folder", "device"], said, strict=False):
        assert words in what


def test_a_huge_sparse_file_is_refused_without_reading_it(opener: Opener, root: int, ws: Path) -> None:
    with (ws / "sparse").open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(Denied, match="1,099,511,627,776 bytes"):
        open_regular(root, ("sparse",))


def test_a_path_through_a_file_is_refused(opener: Opener, root: int, ws: Path) -> None:
    (ws / "x").write_text("hello")
    with pytest.raises(Denied):
        open_regular(root, ("x", "y"))


def test_nothing_stays_open(opener: Opener, root: int, ws: Path) -> None:
    (ws / "d" / "x").write_text("hello")
    (ws / "link").symlink_to("/etc")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        fd = open_regular(root, ("d", "x"))
        assert fd is not None
        os.close(fd)
        assert open_regular(root, ("d", "none")) is None
        for parts in (("link", "passwd"), ("d",), ("d", "x", "y")):
            with pytest.raises(Denied):
                open_regular(root, parts)
    assert len(os.listdir("/proc/self/fd")) == before
