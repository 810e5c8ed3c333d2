"""The pictures of a run's machine, each as an address that holds the whole drawing."""

from base64 import b64encode
from dataclasses import dataclass

from busbw.show.page.placement_svg import placement_svg
from busbw.show.page.subject import Subject
from busbw.show.page.topology_svg import topology_svg
from busbw.show.placement_words import placement_words
from busbw.show.plain import printable
from busbw.show.topology_words import link_lines, summary


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawing:
    """An SVG as a `data:` address, what it shows in words, and what is to be known of it."""

    address: str
    words: str
    caption: str
    lines: tuple[str, ...] = ()


def pictures_of(subject: Subject) -> tuple[Drawing, ...]:
    """Return where the ranks were, and the node, where its inside is known.

    As images they keep their style sheets to themselves.
    """
    run = subject.run
    placed = Drawing(
        address=svg_address(placement_svg(run)),
        words=printable(f"hosts and ranks: {placement_words(run.plan.placement)}"),
        caption="Hosts and ranks, as the ranks said where they were.",
    )
    if subject.picture is None:
        return (placed,)
    view = subject.picture.view
    node = Drawing(
        address=svg_address(topology_svg(view)),
        words=printable(f"one node: {summary(view.topology)}"),
        caption=f"One node: {subject.picture.whose}.",
        lines=(*link_lines(view.topology), *view.notes),
    )
    return (placed, node)


def svg_address(svg: str) -> str:
    """Return an address that holds a whole drawing."""
    return f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"
