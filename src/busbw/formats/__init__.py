"""The formats of other tools: one module reads what one tool writes.

Text in, values out. A reader offers a `FORMAT` (`form`) and stands in `registry`; `lines` gives it its lines. What runs
the programs of nccl-tests and OSU is in `measure.backends`.
"""
