"""Settings read from wherever they stand, with their places, without running anything. Text in, values out.

`texts.read` is the door: it finds out the language and gives the text to its reader, which takes down in a
`context.Ledger` what is set where. A shell script goes from `shell_words` over `shell` to `shell_commands`; the command
lines of all languages end in `commands`. Of Python, `python` reads what goes into an environment, and `python_texts`
follows what texts and lists are put together from.
"""

from busbw.env.reading.settings_files import from_environment
from busbw.env.reading.texts import LANGUAGES, LARGEST_BYTES, read, text_of

__all__ = ["LANGUAGES", "LARGEST_BYTES", "from_environment", "read", "text_of"]
