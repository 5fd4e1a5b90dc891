"""The tools of the end-to-end tests: a server to start, clients to ask it, files to serve."""
