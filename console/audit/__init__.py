"""The append-only hash chain: writing, verifying, exporting. Works with the supervisor down."""
