"""The ledger and the audit log: opened, and written in order by one thread."""
