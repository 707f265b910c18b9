"""The evidence of a kill: the processes as they were last seen, and the case folder."""
