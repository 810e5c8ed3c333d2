"""Points in words, where a row of numbers would be too much."""

from busbw.exports.rows import PointRow
from busbw.units import format_size


def point_name(row: PointRow) -> str:
    """Return what tells a point from the others of its collective: `4 MiB, float32, sum, out of place, 8 ranks`."""
    ends = f"{row.source} to {row.target}" if row.source is not None else ""
    places = {None: "", True: "in place", False: "out of place"}
    parts = (
        format_size(row.size_bytes) if row.size_bytes is not None else "no size",
        row.dtype or "",
        row.op or "",
        f"root {row.root}" if row.root is not None else "",
        places[row.in_place],
        f"{row.ranks} ranks" if row.ranks is not None else "",
        ends,
        f"group {row.group}" if row.group is not None else "",
        f"repeat {row.repeat}" if row.repeat else "",
    )
    return ", ".join(part for part in parts if part)
