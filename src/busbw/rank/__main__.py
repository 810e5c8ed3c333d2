"""Entry point of a rank."""

import sys


def _main() -> int:
    try:
        from busbw.rank.program import main  # noqa: PLC0415 - here its failure can be told
    except (ImportError, OSError, RuntimeError) as error:
        # mpi4py loads the MPI library while it is imported; the launching side repeats this line.
        print(f"busbw rank failed at loading MPI: {'; '.join(str(error).splitlines())}", file=sys.stderr)
        return 3
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(_main())
