"""What a site adds to the catalogue of platforms."""

from busbw.base.value import Value


class SiteFile(Value, kw_only=True, frozen=True):
    """One TOML file from a site's directory, as it was found."""

    # Its last part names the platform; a file in a folder `family` is one that platforms extend.
    path: str
    text: str
