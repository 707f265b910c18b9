"""Rollback: what agents changed, side by side with what was before, and putting it back."""
