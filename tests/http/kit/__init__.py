"""Tools of the end-to-end tests: start servers, send requests, create files."""
