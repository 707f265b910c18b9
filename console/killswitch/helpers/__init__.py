"""Programs that the guard starts for one request each, and never loads: who may rearm, and what speaks against it."""
