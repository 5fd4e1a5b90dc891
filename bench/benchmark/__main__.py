"""Entry point of python -m benchmark, which bench/run executes."""
import sys

from . import cli

sys.exit(cli.main(sys.argv[1:]))
