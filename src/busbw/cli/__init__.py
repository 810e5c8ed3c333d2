"""The command line: arguments in, text out, exit codes."""

import contextlib
import errno
import io
import sys

# A full disk or quota, a device that fails, a file that is as long as it may be, an output that is not open.
_REFUSALS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EBADF})


def main() -> None:
    """Run the `busbw` command and exit with its code."""
    import click

    from busbw.base.errors import BusbwError, ExitCode

    try:
        _run_and_flush()
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except BusbwError as error:
        from busbw.base.text import printable

        print(printable(str(error)), file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output has gone; nothing is left to say and nobody to say it to.
        sys.stderr.close()
        sys.exit(ExitCode.OK)
    except OSError as error:
        # Every other file is written by the store, which says which one it was.
        if error.filename is None and error.errno in _REFUSALS:
            print(f"error: cannot write to standard output: {error.strerror}", file=sys.stderr)
            _forget_output()
        else:
            _print_trace()
        sys.exit(ExitCode.RUN_FAILED)
    except (KeyboardInterrupt, click.Abort):
        print("ended by the user", file=sys.stderr)
        sys.exit(130)
    except Exception:  # noqa: BLE001 - Python's exit code for a crash is 1, and 1 means findings
        _print_trace()
        sys.exit(ExitCode.RUN_FAILED)


def _print_trace() -> None:
    import traceback

    traceback.print_exc()


def _run_and_flush() -> None:
    """Run the command, and write all of its output before exiting: what fails later has no exit code."""
    from busbw.cli.command import busbw

    _replace_what_cannot_be_written()
    try:
        sys.exit(busbw.main(prog_name="busbw", standalone_mode=False))
    except SystemExit:
        # Not sys.stdout.flush(): there is none where standard output is closed.
        print(end="", flush=True)
        raise


def _replace_what_cannot_be_written() -> None:
    """Have a terminal that is not of UTF-8 show `?` for what it cannot; JSON stays whole, or fails."""
    if "--json" in sys.argv:
        return
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            stream.reconfigure(errors="replace")


def _forget_output() -> None:
    """Throw away what standard output did not take: Python would try it again when it ends, and exit with 120."""
    with contextlib.suppress(OSError):
        sys.stdout.close()
