"""Sessions: their workspaces over their life, with routes and metrics."""
