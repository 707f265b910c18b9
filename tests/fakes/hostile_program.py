#!/usr/bin/python3
"""What a program might do that is started as Claude Code and is not: ``flood``, ``deaf``. Chosen by its first message."""

import json
import os
import sys
import time

task = json.loads(sys.stdin.readline())["message"]["content"]
if task == "flood":
    text = json.dumps(
        {"type": "assistant", "message": {"id": "m", "model": "x", "content": [{"type": "text", "text": "\x1b[31m" + "y" * 500}]}}
    )
    while True:
        os.write(1, text.encode() + b'\n{"not json\n')
os.write(1, b'{"type": "system", "subtype": "init", "session_id": "s", "model": "' + b"m" * 5_000_000)  # a line that never ends
os.close(1)
os.close(2)
while True:
    time.sleep(1)
