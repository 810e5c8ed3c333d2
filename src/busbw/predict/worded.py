"""Machines as documents word them: `CoreWeave HGX H100 8x400G NDR IB`, `AWS p5.48xlarge x2 (H100)`, `8x A100 NVLink3`.

A platform is the one whose name the words hold, where its GPUs are not others than those named. Without one, nodes are
described by the GPUs, NICs and network that the words name; what they leave out is not guessed.
"""

from collections.abc import Sequence

from busbw.base.errors import InputError
from busbw.model.platform import Platform
from busbw.predict.described import described_machine, like_platform
from busbw.predict.machines import MachineClass, machine_of
from busbw.predict.parts import are_cards, model_words, named_gpu, named_network, named_nics

_HINT = "a platform's id, or words as 'gpu=H200, gpus=8, nics=16x200G, fabric=RoCE'"
_LONGEST = 200


def worded_machine(
    words: str, *, gpus: int, nodes: int, named: Sequence[str], platforms: Sequence[Platform]
) -> MachineClass:
    """Return nodes as words name or describe them, with so many GPUs each; `named`: platforms that the words name.

    Raises InputError for words that leave open what is needed: GPUs, and between nodes NICs and their network.
    """
    text = words[:_LONGEST]
    if "=" in text:
        _, machine = described_machine(text, platforms)
        if machine.rates.gpus != gpus:
            raise InputError(f"{text!r} has {machine.rates.gpus} GPUs a node, the rows {gpus}", hint=_HINT)
        return machine
    model = named_gpu(text, platforms)
    nics, fabric = named_nics(text, gpus), named_network(text)
    found = _named(named, model, platforms)
    if found is not None:
        machine = machine_of(found, gpus=gpus)
        is_told = machine.rates.nic is not None and machine.rates.ports and machine.fabric is not None
        if nodes == 1 or is_told or model is None or nics is None or fabric is None:
            return machine
    if model is None:
        raise InputError(f"no platform and no known GPU is named in {text!r}", hint=_HINT)
    if are_cards(text):
        raise InputError(f"{text!r} has {model} as cards in slots, of which no measurement gives constants", hint=_HINT)
    if nodes == 1:
        return machine_of(like_platform(model, gpus, platforms), gpus=gpus)
    if nics is None or fabric is None:
        lacks = "the NICs of a node" if nics is None else "the network between nodes"
        raise InputError(f"{text!r} does not say {lacks}", hint=_HINT)
    _, machine = described_machine(f"gpu={model}, gpus={gpus}, nics={nics[0]}x{nics[1]}G, fabric={fabric}", platforms)
    return machine


def _named(named: Sequence[str], model: str | None, platforms: Sequence[Platform]) -> Platform | None:
    known = {each.id: each for each in platforms}
    return next((known[each] for each in named if each in known and _may_have(known[each], model)), None)


def _may_have(platform: Platform, model: str | None) -> bool:
    own = model_words(platform)
    # DGX H100 and H200 are one platform, which names one of its GPUs; their links are the same.
    return platform.gpu.count > 0 and (
        model is None or own == [""] or model in own or {model, *own} >= {"H100", "H200"}
    )
