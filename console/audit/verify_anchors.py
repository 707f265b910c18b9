"""Whether a log is this instance's: each start of a supervisor names the instance, so one that was taken from another is told."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from console.audit.database import open_reader, reason

STARTED = "supervisor.started"
FIELD = "instance"
"""In the data of a start's record: the instance's id. Records of earlier versions have none."""


def foreign(log: Path, instance_id: str) -> str:
    """The first start on record that was another instance's, in words, or ''. Never raises on what the file holds."""
    try:
        with closing(open_reader(log)) as connection:
            sql = "SELECT seq, data FROM records WHERE kind = ? AND instr(data, ?) ORDER BY seq"
            with closing(connection.execute(sql, (STARTED, FIELD))) as rows:
                for seq, data in rows:
                    if (named := _named(data)) != instance_id:
                        return f"record {seq} is of another instance ({named[:20]!r}): this log, or a part of it, is not this instance's."
    except (sqlite3.Error, OSError) as error:
        return f"the file cannot be read: {reason(error)}."
    return ""


def _named(data: bytes) -> str:
    try:
        return str(json.loads(data)[FIELD])
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""
