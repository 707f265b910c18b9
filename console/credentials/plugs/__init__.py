"""The ways in which a secret of another program is replaced and presented: command, http, keyring, file."""
