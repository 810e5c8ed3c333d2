"""Readers of what training programs print and write. Begin with `reader`; `step_forms` has the lines, by program."""
