"""The HTML report: one file that needs no network, from the templates in `templates`.

Begin with `html`; `section` is one run of it.
"""
