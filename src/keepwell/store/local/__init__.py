"""The engine on the user's own disk: one SQLite database, opened through APSW."""
