"""Where an ordinary user's supervisor lives: in the same delegated scope as its guard, or its agents could not enter their leaves.

A process moves itself only between cgroups whose common ancestor it may write (cgroups(7)); from a login session that ancestor is
root's. So the supervisor is started again, as the same process, by systemd-run --scope, before it has opened anything.
"""

from __future__ import annotations

import logging
import os
import sys

from console.killswitch.kernel.delegation import find_home, settle_in_scope

log = logging.getLogger(__name__)


def move_home(instance_id: str) -> None:
    """Does not return where a scope is to be had: this process runs its own command line again, inside it. Never raises."""
    home = find_home(instance_id)
    if home.prefix:
        words = [*home.prefix, sys.executable, *sys.orig_argv[1:]]
        try:
            os.execve(words[0], words, {**os.environ, **home.environment})
        except OSError as error:
            log.warning("no scope: %s cannot be run: %s", words[0], error)
    elif home.why_not:
        log.info("no scope: %s", home.why_not)
    settle_in_scope()
