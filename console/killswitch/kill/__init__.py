"""A kill, in the order it happens: request, session, targets, second look, connections, receipt."""
