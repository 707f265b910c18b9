"""The receipt of a kill: opens by itself at the press, fills live, and is kept."""
