"""The agent image: its tag names its content."""

from __future__ import annotations

import tarfile

from console.sandbox.containers import image


def test_the_tag_follows_the_content() -> None:
    parts = {"libc6": "SHA256:aa", "python3-minimal": "SHA256:bb"}
    tag = image.content_tag(parts)
    assert len(tag) == 12
    assert tag == image.content_tag(dict(reversed(parts.items())))
    assert tag != image.content_tag({**parts, "libc6": "SHA256:ab"})


def test_nobody_gets_a_set_uid_program() -> None:
    info = tarfile.TarInfo("./usr/bin/su")
    info.mode, info.uid = 0o4777, 1000
    found = image._as_root(info)
    assert (found.mode, found.uid, found.mtime) == (0o755, 0, 0)
    temporary = tarfile.TarInfo("./tmp")
    temporary.mode = 0o755
    assert image._as_root(temporary).mode == 0o1777


def test_what_an_image_does_not_need_stays_out() -> None:
    assert all(image.NOT_NEEDED.match(name) for name in ("perl-base", "dpkg", "tar", "libkrb5-3"))
    assert not any(image.NOT_NEEDED.match(name) for name in ("libc6", "python3.11-minimal", "busybox-static", "libssl3"))
