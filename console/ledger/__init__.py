"""Tables and queries (SQLAlchemy Core): what must survive a restart."""
