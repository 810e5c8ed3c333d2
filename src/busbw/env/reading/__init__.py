"""Settings read from wherever they stand, with their places, without running anything. Text in, values out."""

from busbw.env.reading.settings_files import from_environment
from busbw.env.reading.texts import LANGUAGES, LARGEST_BYTES, read, text_of

__all__ = ["LANGUAGES", "LARGEST_BYTES", "from_environment", "read", "text_of"]
