"""The keyring, tokens, and rotation with its proof."""
