"""``packaging/build OUT``: stages the three packages, then writes packages, SBOMs, sizes and checksums into OUT."""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from packages import describe, documents, elf, formats, nfpm, sbom, stage  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Exit codes: 0 made, 1 a step failed, with what failed on stderr."""
    parser = argparse.ArgumentParser(prog="packaging/build", allow_abbrev=False)
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the packages; made when missing")
    parser.add_argument("--format", default="deb", help="deb, rpm, archlinux, comma separated")
    parser.add_argument("--work", type=Path, help="keep the staged files here; emptied first")
    parser.add_argument("--version", default=describe.version(ROOT), help="another version than the source's")
    parser.add_argument("--compression", default="xz", choices=("xz", "gzip"), help="of .deb: gzip is quicker, xz a third smaller")
    parser.add_argument("--commit", default="HEAD", help="what is built; files that are not committed never are")
    given = parser.parse_args()
    os.environ["SOURCE_DATE_EPOCH"] = str(describe.moment(ROOT, given.commit))
    os.environ["PYTHONHASHSEED"] = "0"
    os.umask(0o022)
    try:
        with tempfile.TemporaryDirectory(prefix="watchfloor-build-") as temporary:
            work = (given.work or Path(temporary)).absolute()
            shutil.rmtree(work, ignore_errors=True)
            formats.check(kinds := given.format.split(","))
            build(work, given.out.absolute(), kinds, given.version, given.compression, given.commit)
    except subprocess.CalledProcessError as error:
        print(f"packaging/build: this failed: {' '.join(map(str, error.cmd))[:400]}", file=sys.stderr)
        return 1
    except (describe.CannotBuild, OSError) as error:
        print(f"packaging/build: {error}", file=sys.stderr)
        return 1
    return 0


def build(work: Path, out: Path, kinds: list[str], version: str, compression: str, commit: str) -> None:
    """Every step in its order; ``out`` receives files only when all of them are there."""
    tools = stage.make_tools(ROOT, work / "tools")
    wheel = stage.make_wheel(ROOT, commit, tools, work / "wheel")
    source = wheel.parent / "source"  # the committed state: nothing that changes meanwhile comes along
    trees = stage.stage(source, tools, wheel, work / "stage")
    documents.write(trees, version)
    made = work / "out"
    made.mkdir()
    shutil.copy2(wheel, made)
    for package in describe.PACKAGES:
        sonames = elf.needed_outside(trees[package.name], *trees.values())
        sbom.write(made / f"{package.name}_{version}.cdx.json", package.name, version, trees[package.name])
        for kind in kinds:
            needed, form = formats.needed(kind, sonames), nfpm.Form(kind, work, compression)
            nfpm.run_nfpm(source, tools, package, trees[package.name], needed, version, form, made)
    (made / "SIZES.txt").write_text(stage.sizes(trees))
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in sorted(made.iterdir())]
    (made / "SHA256SUMS").write_text("\n".join(lines) + "\n")
    out.mkdir(parents=True, exist_ok=True)
    for file in sorted(made.iterdir()):
        shutil.copyfile(file, out / file.name)
        print(out / file.name)


if __name__ == "__main__":
    sys.exit(main())
