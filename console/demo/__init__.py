"""What ``watchfloor demo`` shows: harmless agents, two hosts, promises that are checked."""
