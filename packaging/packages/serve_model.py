"""A scripted model on loopback, for the trial: it asks for one command that does not end. Writes its URL to the file that is named."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.fakes.model_server import Call, ModelServer, Reply, Scene

COMMAND = "tail -f /dev/null"

if __name__ == "__main__":
    call = Call("Bash", {"command": COMMAND, "description": "waits"})
    with ModelServer(Scene("TRIAL", Reply(calls=(call,)), Reply("done"))) as model:
        Path(sys.argv[1]).write_text(model.url)
        while True:
            time.sleep(60)
