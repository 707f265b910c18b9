"""Daemons: programs outside a session's tree that can start the session again. Found here, never signalled from here."""
