"""NCCL's search for channels, redone: within one node, and for several nodes that are alike.

`node` has what is searched: `ways` between GPUs, and `ports`. `tries` has the order of tries over `speeds`; `within`
and `between` lay the channels of one. Begin with `channels`.
"""
