"""What libfabric makes of a text: strtol for integers and sizes, without suffixes, and words for switches.

src/var.c; a few variables of EFA that it does not take end the process (prov/efa/src/efa_env.c).
"""

import msgspec

from busbw.env.given import Given
from busbw.env.values_c import default_of, read_c_number
from busbw.model.envvar import EnvVar
from busbw.model.understood import Understood

_ON = ("1", "true", "yes", "on")
_OFF = ("0", "false", "no", "off")
_MEANT = {"y": "1", "t": "1", "enable": "1", "enabled": "1", "n": "0", "f": "0", "disable": "0", "disabled": "0"}
_ABORTS = ("FI_EFA_MTU_SIZE", "FI_EFA_TX_IOV_LIMIT", "FI_EFA_RX_IOV_LIMIT")


def read_libfabric(given: Given) -> Understood:
    """Return what libfabric makes of a text."""
    if given.var.name in _ABORTS:
        return _aborts("current libfabric ends the process when it is set at all, whatever the value")
    if given.var.name == "FI_EFA_IFACE" and not given.text:
        return _aborts("an empty value ends the process")
    if given.var.kind == "bool":
        return _switch(given.var, given.text)
    if given.var.kind == "enum" and given.var.choices:
        return _word(given.var, given.text)
    understood = read_c_number(given)
    if given.var.name == "FI_EFA_TX_MIN_CREDITS" and (understood.value or "").startswith(("0", "-")):
        return _aborts(f"it is read as {understood.value}, and 0 or less ends the process")
    return understood


def _aborts(problem: str) -> Understood:
    return Understood(value=None, problem=problem, kind="fails")


def _switch(var: EnvVar, text: str) -> Understood:
    word = text.lower()
    if word in _ON or word in _OFF:
        return Understood(value="1" if word in _ON else "0")
    known = "0, 1, true, false, yes, no, on and off"
    problem = f"libfabric takes {known}: {text[:40]!r} is ignored, with a warning in its log"
    meant = word.strip()
    instead = meant if meant in (*_ON, *_OFF) else _MEANT.get(meant)
    return Understood(value=default_of(var), problem=problem, kind="ignored", instead=instead)


def _word(var: EnvVar, text: str) -> Understood:
    folded = {choice.lower(): choice for choice in var.choices}
    exact = var.owner != "libfabric" or var.name == "FI_MR_CACHE_MONITOR"
    if text in var.choices or (not exact and text.lower() in folded):
        return Understood(value=text)
    known = f"libfabric knows {', '.join(var.choices)}: {text[:40]!r}"
    if var.name == "FI_LOG_LEVEL":
        # fi_convert_log_str of src/log.c.
        return Understood(value=var.choices[0], problem=f"{known} is taken for {var.choices[0]}", kind="other value")
    problem = f"{known} is ignored"
    found = Understood(value=default_of(var), problem=problem, kind="ignored")
    return msgspec.structs.replace(found, instead=folded.get(text.strip().lower()))
