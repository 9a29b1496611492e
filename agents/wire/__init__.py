"""Rows and events as the wire writes them: plain dicts, nothing stored, nothing decided."""
