"""Manifests of Kubernetes as text: names and values that it takes, and YAML that every reader reads alike."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import yaml

from busbw.base.errors import InputError

Node = str | int | bool | Sequence["Node"] | Mapping[str, "Node"]

# RFC 1123; a name that becomes the host name of a pod begins with a letter (RFC 1035).
_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_DNS_LABEL = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")
# `name`, or `domain/name`, as resources and the labels of nodes are called.
_QUALIFIED = re.compile(r"(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_QUANTITY = re.compile(r"[1-9][0-9]{0,9}(?:[KMGT]i?|k)?")
_IMAGE = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.:/@+]{0,511}")
# Kubernetes puts variables in for $(NAME), and takes $$ for a plain $.
_EXPANDED = re.compile(r"\$+(?=\()|\$\$+")
# What a ConfigMap may hold, and about what the API server takes of any object.
_LONGEST_BYTES = 1024 * 1024


def check_label(text: str, what: str) -> None:
    """Raise InputError for what cannot be a name of RFC 1123."""
    if _LABEL.fullmatch(text) is None:
        raise _not_a_name(text, what, "begins and ends with a letter or a digit")


def check_dns_label(text: str, what: str) -> None:
    """Raise InputError for what cannot be the first name of a host."""
    if _DNS_LABEL.fullmatch(text) is None:
        raise _not_a_name(text, what, "begins with a letter, and ends with a letter or a digit")


def _not_a_name(text: str, what: str, rule: str) -> InputError:
    return InputError(
        f"{text[:80]!r} cannot be {what}", hint=f"it has at most 63 small letters, digits and `-`, {rule}"
    )


def check_resource(name: str, quantity: str) -> None:
    """Raise InputError for what cannot be a resource and how much of it."""
    if _QUALIFIED.fullmatch(name) is None:
        raise InputError(f"{name[:80]!r} cannot be a resource", hint="for example nvidia.com/gpu, rdma/ib")
    if _QUANTITY.fullmatch(quantity) is None:
        raise InputError(f"{quantity[:80]!r} cannot be a quantity", where=name, hint="for example 8 or 64Gi")


def check_node_label(name: str, value: str) -> None:
    """Raise InputError for what cannot be a label of nodes."""
    if _QUALIFIED.fullmatch(name) is None or _LABEL_VALUE.fullmatch(value) is None:
        raise InputError(f"{name[:80]}={value[:80]} cannot be a label of nodes")


def check_image(image: str) -> None:
    """Raise InputError for what cannot be the reference of an image."""
    if _IMAGE.fullmatch(image) is None:
        raise InputError(f"{image[:80]!r} cannot be an image", hint="REGISTRY/NAME:TAG, or REGISTRY/NAME@DIGEST")


def literal(text: str, where: str) -> str:
    """Return a text so that Kubernetes expands nothing in it. Raises InputError for what it cannot hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError("a manifest holds UTF-8 only", where=where) from None
    if "\0" in text:
        raise InputError("a manifest holds no NUL", where=where)
    return _EXPANDED.sub(lambda match: match[0] * 2, text)


def literals(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words of a command so that Kubernetes expands nothing in them."""
    return tuple(literal(word, "the command") for word in words)


def manifest_text(documents: Sequence[Mapping[str, Node]]) -> str:
    """Return documents as YAML: ASCII, every text that could be something else in quotes.

    Raises InputError for a document that the API server would not take.
    """
    for document in documents:
        held_bytes = sum(len(text.encode()) for text in _texts(document))
        if held_bytes > _LONGEST_BYTES:
            raise InputError(
                f"{document['kind']}: {held_bytes} bytes, and Kubernetes takes {_LONGEST_BYTES}",
                hint="put large files into the image or on the volume",
            )
    texts = (
        str(yaml.safe_dump(_plain(document), sort_keys=False, default_flow_style=False, width=1 << 30))
        for document in documents
    )
    return "---\n".join(texts)


def _plain(node: Node) -> Node:
    """Return a copy of lists and dictionaries, of which none is another: YAML would write anchors for those."""
    if isinstance(node, Mapping):
        return {name: _plain(value) for name, value in node.items()}
    if isinstance(node, Sequence) and not isinstance(node, str):
        return [_plain(value) for value in node]
    return node


def _texts(node: Node) -> Iterator[str]:
    """Yield every text in a document."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, Mapping):
        for value in node.values():
            yield from _texts(value)
    elif isinstance(node, Sequence):
        for value in node:
            yield from _texts(value)
