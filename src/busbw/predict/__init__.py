"""What to expect of a collective where nothing was measured: NCCL's own choice, and the time that it takes.

It stands on `limits` and below `judge`, which takes NCCL's time of an empty call from here. Two questions with two
answers: `nccl` says what NCCL chooses, from a graph that `graphs` reads; `closed` says how long that takes, with an
interval: by `shares` of line rates, and `rising` with the size, or `sends` for what NCCL has no model of. Values in,
values out.
"""
