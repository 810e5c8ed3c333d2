"""The profiles of `busbw check` that are shipped, as text. Alone because only this room reads the package's files."""

from functools import cache
from importlib.resources import files

_ENDING = ".toml"


@cache
def shipped_profiles() -> dict[str, str]:
    """Return the text of each shipped profile by its name."""
    folder = files("busbw").joinpath("data", "profiles")
    found = sorted((each for each in folder.iterdir() if each.name.endswith(_ENDING)), key=lambda each: each.name)
    return {each.name.removesuffix(_ENDING): each.read_text(encoding="utf-8") for each in found}
