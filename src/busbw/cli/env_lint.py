"""The verb `env lint`."""

import sys

from busbw.base.errors import ExitCode, InputError
from busbw.model import codec
from busbw.model.finding import SettingsCheck, SettingsFix


def lint_settings(
    file: str | None,
    *,
    here: bool,
    run_name: str | None,
    platform: str | None,
    language: str | None,
    fix: bool,
    nccl: str | None,
    as_json: bool,
) -> None:
    """Print what is wrong with settings, and exit with 1 where something is; with `fix`, print what to change."""
    _check_choice(file, here=here, run_name=run_name, language=language, fix=fix)
    if fix and file is not None:
        _print_fix(file, language=language, platform=platform, nccl=nccl, as_json=as_json)
        return
    checked = _checked(file, run_name=run_name, platform=platform, language=language, nccl=nccl)
    if as_json:
        sys.stdout.write(codec.encode_pretty(checked).decode())
    else:
        from busbw.show.text.findings import settings_check_text

        settings_check_text(checked)
        sys.stdout.flush()
        for hint in checked.hints:
            print(f"hint: {hint}", file=sys.stderr)
    sys.exit(ExitCode.FINDINGS if checked.errors or checked.warnings else ExitCode.OK)


def _check_choice(file: str | None, *, here: bool, run_name: str | None, language: str | None, fix: bool) -> None:
    given = [name for name, is_given in (("FILE", file), ("--here", here), ("--run", run_name)) if is_given]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} are given", hint="lint one of them")
    if not given:
        raise InputError("nothing to lint is given", hint="busbw env lint job.sh, or --here, or --run last")
    if file is None and (fix or language is not None):
        raise InputError(f"{'--fix' if fix else '--as'} is for a file", hint="busbw env lint FILE --fix")


def _checked(
    file: str | None,
    *,
    run_name: str | None,
    platform: str | None,
    language: str | None,
    nccl: str | None,
) -> SettingsCheck:
    from busbw.api.settings import lint_file, lint_here, lint_run

    if file is not None:
        return lint_file(file, language=language, platform=platform, nccl=nccl)
    if run_name is not None:
        return lint_run(run_name, platform=platform, nccl=nccl)
    return lint_here(platform=platform, nccl=nccl)


def _print_fix(file: str, *, language: str | None, platform: str | None, nccl: str | None, as_json: bool) -> None:
    """Print a diff that `patch` takes; nothing is written."""
    from busbw.api.settings import fixed_file
    from busbw.show.plain import printable

    fixed = fixed_file(file, language=language, platform=platform, nccl=nccl)
    if as_json:
        sys.stdout.write(codec.encode_pretty(fixed).decode())
    else:
        # A diff that goes into a file or `patch` is kept to the byte.
        sys.stdout.write(printable(fixed.diff) if sys.stdout.isatty() else fixed.diff)
        sys.stdout.flush()
        print(f"hint: {_remains(fixed)}", file=sys.stderr)
    sys.exit(ExitCode.FINDINGS if fixed.diff else ExitCode.OK)


def _remains(fixed: SettingsFix) -> str:
    if not fixed.diff:
        return "nothing that can be corrected with certainty"
    return f"{fixed.findings - fixed.left} of {fixed.findings} findings are gone with this; nothing was written"
