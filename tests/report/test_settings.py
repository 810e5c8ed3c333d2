"""Settings in a report: who set what, and the command that brings them back."""

import shlex

from busbw.model.settings import Setting, Settings
from busbw.show.page.overview import setting_differences
from busbw.show.page.pictures import ReportSubject
from busbw.show.page.section import setting_rows
from busbw.show.reproduce import with_settings

from .factories import make_plan_of, make_run


def chosen(*choices: tuple[str, str | None, str]) -> Settings:
    return Settings().then(
        *(Setting(name=name, value=value, layer=layer, source=f"{layer} of {name}") for name, value, layer in choices)  # type: ignore[arg-type]
    )


def test_a_row_names_who_won_and_who_lost():
    settings = chosen(
        ("NCCL_PROTO", "LL", "etc_conf"), ("NCCL_PROTO", "Simple", "shell"), ("NCCL_ALGO", None, "command_line")
    )

    algo, proto = setting_rows(settings)

    assert (algo.value, algo.who, algo.replaced) == ("unset", "busbw run", "")
    assert (proto.value, proto.source) == ('"Simple"', "shell of NCCL_PROTO")
    assert proto.replaced == '"LL" of /etc/nccl.conf (etc_conf of NCCL_PROTO)'


def test_the_command_brings_the_environment_back_and_nothing_else():
    settings = chosen(
        ("NCCL_PROTO", "a b", "shell"),
        ("NCCL_DEBUG", "INFO", "conf"),
        ("MPI4PY_LIBMPI", "/lib", "command_line"),
        ("UCX_TLS", "https://<withheld>@host", "shell"),
        ("SLURM_JOB_ID", "7", "shell"),
        ("NCCL_$(reboot)", "1", "shell"),
        ("NCCL_ALGO", None, "shell"),
    )

    assert shlex.split(with_settings("busbw run", settings)) == ["NCCL_PROTO=a b", "busbw", "run"]
    assert with_settings("busbw run", None) == "busbw run"


def test_what_differs_between_runs_is_named_with_the_runs_that_had_it():
    run = make_run(make_plan_of("all_reduce"))
    proto = chosen(("NCCL_PROTO", "LL", "shell"), ("NCCL_ALGO", "Ring", "shell"))
    ring = chosen(("NCCL_ALGO", "Ring", "shell"))
    runs = [ReportSubject(run=run, label=f"r{number}", settings=proto if number == 3 else ring) for number in range(8)]
    runs.append(ReportSubject(run=run, label="untold"))

    (difference,) = setting_differences(runs)

    assert difference.name == "NCCL_PROTO"
    assert difference.values == (("not set", "r0, r1, r2, r4 and 3 more"), ('"LL"', "r3"))
