"""Containers, programs and places for tests, with what a test does not care about filled in."""

from busbw.measure.containers.place import ContainerPlace
from busbw.model.plan import Program
from busbw.model.request import Bind, Container, RuntimeName

HASTY = "a b\n\"c' $HOME $(id) \\ `id` é,=;:{}%!#\t"
SRUN = ContainerPlace(starter="srun", pmi="pmix")


def container(runtime: RuntimeName, **fields: object) -> Container:
    programs = {"charliecloud": "ch-run", "pyxis": ""}
    whole = {"program": programs.get(runtime, runtime), "image": "image.sif", **fields}
    return Container(runtime=runtime, **whole)


def program(*argv: str, **env: str) -> Program:
    return Program(argv=argv or ("prog", "-b", "8"), env=tuple(env.items()))


def bind(source: str, target: str | None = None, *, writable: bool = False, **fields: object) -> Bind:
    return Bind(source=source, target=target, read_only=not writable, **fields)
