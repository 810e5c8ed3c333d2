"""The verb `train`."""

import click

from busbw.cli.train.logs import read, scale
from busbw.cli.train.planning import list_, make, plan, script, show
from busbw.cli.train.proxying import proxy
from busbw.cli.train.replaying import run


@click.group()
def train() -> None:
    """Training jobs: what a step communicates and takes, replayed too, what logs and traces say, how jobs scale."""


for command in (list_, show, make, plan, script, run, proxy, read, scale):
    train.add_command(command)
