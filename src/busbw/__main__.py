"""`python -m busbw` is `busbw`."""

from busbw.cli import main

if __name__ == "__main__":
    main()
