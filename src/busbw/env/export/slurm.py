"""A batch script for Slurm that starts any program with the settings.

Settings are exported and not listed in `--export`, which takes commas in a value for the ends of names.
"""

from busbw.env.export.page import Page, Written, head_lines, tail_lines
from busbw.env.export.shell import export_lines

_USE = "Use: sbatch [OPTIONS] THIS_FILE [OPTIONS OF SRUN] PROGRAM [ARGUMENTS]"
# Said outright, because a job submitted with --export=NONE hands that on to srun.
_START = 'srun --export=ALL "$@"'


def write(page: Page) -> Written:
    """Return a script with exports and one srun."""
    directives = [f"#SBATCH --nodes={page.nodes}"] if page.nodes is not None else []
    lines = [
        "#!/bin/bash",
        *directives,
        *head_lines(page, _USE),
        *export_lines(page.entries),
        "",
        _START,
        *tail_lines(page),
    ]
    return Written(text="\n".join(lines) + "\n")
