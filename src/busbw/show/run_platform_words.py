"""The platform of a run, and who says so."""

from busbw.model.plan import Plan

_FROM = {
    "asked": "as asked for",
    "firmware": "by the firmware of the planning host",
    "metadata": "by the cloud's metadata service",
    "hardware": "by the hardware of the planning host",
}


def platform_words(plan: Plan) -> str | None:
    """Return the platform of a run with how it is known; None: it is not."""
    start = plan.surroundings
    if start is None or start.platform is None:
        return None
    return f"{start.platform}, {_FROM[start.platform_from]}" if start.platform_from is not None else start.platform
