"""Entry point of one process: `python -m busbw.rank.training PLAN`, under variables that say which it is."""

import sys

from busbw.rank.training.program import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
