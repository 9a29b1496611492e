"""Batches over HTTP: as Letta serves them, with everything else under /api, and as pages."""
