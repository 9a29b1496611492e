"""Programs that run with a client SDK's own interpreter against a running server."""
