"""python -m benchmark: what bench/run starts."""
import sys

from . import cli

sys.exit(cli.main(sys.argv[1:]))
