"""The TLS benchmark behind bench/run. Only report.py, plots.py and progress.py use packages outside the standard library."""
