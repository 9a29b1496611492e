"""The code that runs inside the sandbox's own processes: standard library only, imports nothing of the server."""
