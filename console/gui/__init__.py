"""The console window (Qt). Enforces nothing and holds no authority."""
