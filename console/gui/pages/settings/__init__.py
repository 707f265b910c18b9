"""The settings page: every setting with its value, origin and lock, made from the table of options."""
