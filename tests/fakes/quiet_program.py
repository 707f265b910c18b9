#!/usr/bin/python3
"""Stands for Claude Code where what it is told is all that matters: prints each line it reads, and asks nobody."""

import sys

if "--version" in sys.argv:
    print("2.1.0 (Claude Code)")
    sys.exit(0)
for line in sys.stdin:
    print(line.rstrip("\n"), flush=True)
