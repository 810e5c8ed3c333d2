"""Settings to write: from the least harmless to any."""

from hypothesis import strategies as st

from busbw.model.settings import Setting, Settings

# Each is what some reader takes for something else than a part of a value.
NASTY = (
    "=mlx5_0,mlx5_1", "^=mlx5_0:1,mlx5_2:1", "", " ", " a b ", "it's", '"', "'", "''", '"a"', "\\", "a\\", "\\n",
    "\\\\", "$HOME", "${HOME}", "$(date)", "$$(HOME)", "$$", "$", "`date`", "a;b", "a&&b", "a|b", "<in", ">out",
    "(x)", "{x}", "{", "}", "}{", "[info]", "]", "{{ BASE }}", "{{{", "# none", "a#b", "%environment", "%d", "!!",
    "!ls", "~", "~root", "*", "?", "-x", "--mca", "-", ",", "a,b=c", "a=b", "=", "==", ":", "a: b", "- a", "yes",
    "null", "0x10", "010", "1e3", "null # x", "&a", "*a", "@a", "%TAG", "--[[ x", "]]", "--", "AWS Libfabric",
    "naïve ☃", "<<EOF", "\\u0041", "\\x41",
)  # fmt: skip
CHARACTERS = st.sampled_from(" '\"\\$`{}[]()<>|&;#%!~*?=,:^@+-_/.aB0") | st.characters(
    max_codepoint=0xFFFF, exclude_categories=("C", "Z")
)
VALUES = st.text(CHARACTERS, max_size=24)
NAMES = st.from_regex(r"NCCL_[A-Z_]?[A-Za-z0-9_]{0,12}", fullmatch=True)
CHOICES = st.dictionaries(NAMES, VALUES | st.sampled_from(NASTY), min_size=1, max_size=12)
REASONS = st.text(max_size=80) | st.sampled_from(
    [
        "a reason that ends in a backslash\\",
        "EOF\nexport NCCL_EVIL=1",
        "it's `odd` (",
        "syntax=evil",
        "]] --",
        "{{ x }}",
    ]
)


def settings_of(values: dict[str, str | None], reason: str | None = None) -> Settings:
    """Return settings with the same reason for each."""
    return Settings().then(
        *(
            Setting(name=name, value=value, layer="platform", source="a rule", reason=reason, cost=reason)
            for name, value in values.items()
        )
    )


def nasty_settings() -> dict[str, str]:
    """Return every nasty value, each under a name of its own."""
    return {f"NCCL_TRY_{number}": value for number, value in enumerate(NASTY)}
