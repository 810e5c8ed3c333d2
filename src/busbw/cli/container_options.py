"""The options of `busbw run` that have every rank run in a container."""

from collections.abc import Callable
from typing import Any, get_args

import click

from busbw.base.errors import InputError
from busbw.model.launch import Bind, Container, RuntimeName

_RUNTIMES: tuple[RuntimeName, ...] = get_args(RuntimeName)
_OPTIONS = (
    click.option(
        "--container", type=click.Choice(_RUNTIMES), help="Run every rank in a container; the launcher stays outside."
    ),
    click.option("--image", metavar="IMAGE", help="The image: a file, a folder or a name, as the runtime takes it."),
    click.option(
        "--mount", "mounts", multiple=True, metavar="SOURCE[:TARGET[:rw]]", help="A path of the host to be seen inside."
    ),
    click.option("--container-option", "container_words", multiple=True, metavar="WORD", help="One word more for it."),
    click.option(
        "--image-python",
        default="python3",
        show_default=True,
        metavar="PROGRAM",
        help="The Python inside that has busbw.",
    ),
)


def container_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options, in this order."""
    for option in reversed(_OPTIONS):
        verb = option(verb)
    return verb


def container_of(asked: dict[str, Any]) -> Container | None:
    """Return the container that the options ask for; None without one. Raises InputError."""
    runtime, image = asked["container"], asked["image"]
    if runtime is None:
        if image is not None or asked["mounts"] or asked["container_words"]:
            raise InputError("an image needs a runtime", hint="--container apptainer, podman, ...")
        return None
    if image is None:
        raise InputError("no image is named", where=f"--container {runtime}", hint="--image FILE")
    return Container(
        runtime=runtime,
        program="",
        image=image,
        binds=tuple(_bind(text) for text in asked["mounts"]),
        gpus=asked["backend"] in ("nccl", "native-nccl"),
        options=asked["container_words"],
    )


def _bind(text: str) -> Bind:
    source, *rest = text.split(":")
    if not source or len(rest) > 2 or (len(rest) == 2 and rest[1] not in ("rw", "ro")):
        raise InputError(f"{text[:80]!r} is no mount", where="--mount", hint="--mount /data:/data:rw")
    return Bind(source=source, target=rest[0] if rest and rest[0] else None, read_only=len(rest) < 2 or rest[1] == "ro")
