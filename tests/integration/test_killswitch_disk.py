"""A disk that is full or read-only never stops a freeze or a kill; it is said, and made good as soon as there is room (faults 2 and 3)."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.private_disk import run_on_a_small_disk

STOP = """
from tests.fakes.guard_world import GuardWorld, until
from console.domain.errors import ConsoleError
from console.domain.verdict import verdict
from console.killswitch.client.kill import press_and_wait
world = GuardWorld(disk / "s")
for name in ("guard.log", "lock"):  # what a guard holds open for writing: the kernel makes no file system read-only under that
    (disk / "s" / "guard").mkdir(parents=True, exist_ok=True)
    (disk / "s" / "guard" / name).touch()
    (disk.parent / name).touch()
    subprocess.run(["mount", "--bind", disk.parent / name, disk / "s" / "guard" / name], check=True)
world.start()
out = {}
def refused(what):
    try:
        what()
    except ConsoleError as error:
        return type(error).__name__
    return "done"
try:
    one, two = world.agent("one"), world.agent("two")
    world.operator.freeze(["two"])
    until(lambda: (world.state / "guard" / "reserve").exists(), "the reserve is laid down")
    until(lambda: '"two"' in (world.state / "guard" / "causes.json").read_text(), "the freeze is on disk")
    BREAK
    out["ticket"] = refused(lambda: world.supervisor.ticket("late", "process", "managed"))
    out["thaw"] = refused(lambda: world.operator.thaw(["two"]))
    out["frozen"] = world.operator.freeze(["one"])["frozen"]
    receipt = press_and_wait(world.state, world.run, world.instance, "all", "disk", "t", timeout_s=90)
    out["zero"], out["dead"] = not verdict(receipt).may_run, [one.wait(60), two.wait(60)]
    out["latch"] = next(s.status for s in receipt.steps if s.name == "latch")
    status = world.operator.status()
    out["latched"], out["said"] = status["latched"], any("not written" in n for n in status["notices"])
    AFTER
    out["receipt"] = json.loads((world.state / "guard" / "receipts" / (receipt.kill_id + ".json")).read_text())["complete"]
    world.kill_guard()
    world.start()
    out["latched again"] = world.operator.status()["latched"]
finally:
    REPAIR
    world.close()
print(json.dumps(out))
"""
MENDED = 'until(lambda: (world.state / "guard" / "receipts" / (receipt.kill_id + ".json")).exists(), "what was owed is written")'

CRASHED = f"""
    world.kill_guard()
    world.start()
    out["after a crash"] = world.operator.status()["latched"]
    empty()
    world.kill_guard()
    world.start()
    until(lambda: (world.operator.status()["kill"] or {{"done": True}})["done"], "it is over")
    {MENDED}
"""


def run(mount: Path, break_: str, after: str, repair: str) -> dict[str, object]:
    code = STOP.replace("BREAK", break_).replace("AFTER", after).replace("REPAIR", repair)
    return dict(run_on_a_small_disk(mount, code, size="4m"))


def test_a_read_only_disk(state_dir: Path) -> None:
    out = run(state_dir / "m", "read_only(True)", f"read_only(False); {MENDED}", "read_only(False)")
    assert out == {
        "ticket": "NotRecorded",
        "thaw": "NotRecorded",
        "frozen": 1,
        "zero": True,
        "dead": [-9, -9],
        "latch": "failed",
        "latched": True,
        "said": True,
        "receipt": True,
        "latched again": True,
    }


def test_a_full_disk_with_its_reserve(state_dir: Path) -> None:
    """The kill's latch gets the reserve, so it is there for a guard that starts on a disk that is full still."""
    out = run(state_dir / "m", "fill()", CRASHED, "")
    assert out["latch"] == "ok" and out["latched"] and out["latched again"] and out["zero"] and out["dead"] == [-9, -9]
    assert out["ticket"] == "NotRecorded" and out["thaw"] == "NotRecorded" and out["frozen"] == 1 and out["receipt"]
    assert out["after a crash"] is True
