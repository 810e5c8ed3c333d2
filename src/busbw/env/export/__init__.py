"""Settings in the forms that something reads, from one page of settings."""

from busbw.env.export.forms import FORMS, check_form, export, export_text
from busbw.env.export.page import Written

__all__ = ["FORMS", "Written", "check_form", "export", "export_text"]
