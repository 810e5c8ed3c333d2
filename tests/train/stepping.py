"""A workload with every kind of group on eight ranks, for steps that are replayed."""

EIGHT = """\
id = "eight"
title = "Two of each on eight ranks"
dtypes = ["bf16"]

[model]
layers = 4
hidden = 128
heads = 4
key_value_heads = 2
ffn = 256
vocabulary = 512
experts = { number = 4, top_k = 2, ffn = 256 }

[[configuration]]
gpus = 8
sequence = 64
micro_batch = 2
global_batch = 8
parallelism = { tp = 2, pp = 2, ep = 2, sequence_parallel = true, zero = 1, overlap = ["tp", "pp", "dp"] }
"""
