"""The `busbw` command. A verb's module is imported when the verb is called, so that --help stays quick."""

import importlib
from typing import NamedTuple

import click

from busbw import __version__


class Verb(NamedTuple):
    """Where a verb is, and the line that `busbw --help` has for it."""

    module: str
    name: str
    help: str


VERBS = {
    "bisect": Verb("bisect", "bisect", "Find which of several differences makes something faster or slower."),
    "check": Verb("nodes.check", "check", "Check nodes before jobs do: which are fit, which to drain, and why."),
    "compare": Verb("compare", "compare", "Compare results, or measure settings in turn and compare those."),
    "doctor": Verb("doctor", "doctor", "Say what the logs of a job tell, or what is wrong with a host."),
    "env": Verb("env", "env", "Settings: what each does, which to set here and why, which are wrong."),
    "export": Verb("results", "export", "Write a run in a format that other tools read."),
    "fabric": Verb("fabric", "fabric", "Say which node, NIC, rail, link or switch of a fabric is bad."),
    "import": Verb("import_", "import_", "Read results of other tools."),
    "isolate": Verb("nodes.isolate", "isolate", "Find the node that makes groups of nodes slow, or fail."),
    "judge": Verb("judge", "judge", "Judge measured sizes: what they reach, and where the rest went."),
    "launch": Verb("launch", "launch", "Print how to start a program on a platform, with reasons."),
    "limit": Verb("platform", "limit", "Say what bus bandwidth a platform can reach at best."),
    "load": Verb("results", "load", "Rebuild the result of a run from its raw records, and print it."),
    "platform": Verb("platform", "platform", "What is published about machines, and which one this is."),
    "plot": Verb("report", "plot", "Draw the curves of results as SVG or PNG."),
    "predict": Verb("predict", "predict", "Say what a collective will take at any scale, with an interval."),
    "probe": Verb("probe", "probe", "Capture what is needed to understand this host."),
    "recipe": Verb("recipe", "recipe", "How to get NCCL, its plug-in and a benchmark onto a machine."),
    "report": Verb("report", "report", "Write one HTML file about one run or several."),
    "run": Verb("run", "run", "Measure collectives on this machine and judge the result."),
    "runs": Verb("history", "runs", "List what is stored, and give it tags."),
    "scaling": Verb("scaling", "scaling", "Draw results over the number of nodes."),
    "show": Verb("results", "show", "Print the result of a run, an import or a comparison."),
    "topo": Verb("topo", "topo", "The topology of one node, and NCCL's topology files."),
    "train": Verb("train.group", "train", "Training jobs: what a step communicates, what logs say, how jobs scale."),
    "trend": Verb("history", "trend", "Show a metric of stored runs over time."),
}


class _Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - as click calls it
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as click calls it
        verb = VERBS.get(cmd_name)
        if verb is None:
            return None
        command: click.Command = getattr(importlib.import_module(f"busbw.cli.{verb.module}"), verb.name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as click calls it
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.help) for name, verb in VERBS.items()])


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="busbw")
def busbw() -> None:
    """Is the interconnect of this machine as fast as it should be, and what to change if it is not?"""
