"""The ledger, the audit log and receipts: opened, written in order by one thread, sealed with keys that can be retired."""
