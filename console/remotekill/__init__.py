"""The kill document in an object store: signatures, state machine, poller, receipts of hosts."""
