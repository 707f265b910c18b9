"""Tokens, fonts, palette, style sheet and icons of the console."""
