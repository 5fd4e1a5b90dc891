"""The TLS benchmark behind bench/run. Only progress.py uses a package outside the standard library (rich)."""
