"""The TLS throughput benchmark: bench/run. Only report.py, plots.py and progress.py need more than Python itself."""
