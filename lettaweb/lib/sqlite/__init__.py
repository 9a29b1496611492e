"""Django's SQLite backend with the write gate ahead of every write."""
