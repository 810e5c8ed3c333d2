"""Site files for tests, as the door would have found them."""

from busbw.model.platform import SiteFile

DIRECTORY = "/etc/busbw/platforms"
# What a platform cannot do without.
HEAD = 'names = ["{name}"]\nprovider = "us"\nkind = "gpu"\n'


def site_file(name: str, text: str, directory: str = DIRECTORY) -> SiteFile:
    """Return a file of a site's directory: `name` is `ours`, or `family/ours`."""
    return SiteFile(path=f"{directory}/{name}.toml", text=text)


def platform_file(name: str, text: str = "", *, head: str = "") -> SiteFile:
    """Return the file of a new platform. `head` stands before the keys it needs, `text` after them."""
    return site_file(name, head + HEAD.format(name=name.title()) + text)
