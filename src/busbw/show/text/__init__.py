"""Text for a terminal: one module a kind of answer.

Begin with `terminal`, which shows a run.
"""
