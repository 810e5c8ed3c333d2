"""Entry point of a rank."""

import sys

from busbw.rank.program import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
