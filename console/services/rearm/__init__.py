"""The un-kill of this host: rearm, the passphrase that proves it, and agents started again."""
