"""The command line: arguments in, text out, exit codes."""

import sys


def main() -> None:
    """Run the `busbw` command and exit with its code."""
    import traceback

    import click

    from busbw.cli.command import busbw
    from busbw.errors import BusbwError, ExitCode

    try:
        sys.exit(busbw.main(prog_name="busbw", standalone_mode=False))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except BusbwError as error:
        from busbw.report.plain import printable

        print(printable(str(error)), file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output has gone; nothing is left to say and nobody to say it to.
        sys.stderr.close()
        sys.exit(ExitCode.OK)
    except (KeyboardInterrupt, click.Abort):
        print("ended by the user", file=sys.stderr)
        sys.exit(130)
    except Exception:  # noqa: BLE001 - Python's exit code for a crash is 1, and 1 means findings
        traceback.print_exc()
        sys.exit(ExitCode.RUN_FAILED)
