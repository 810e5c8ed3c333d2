"""NCCL's search for channels, redone: within one node, and for several nodes that are alike.

`node` has what is searched and `ports` its ways to the network, `speeds` what is tried of a channel, `tries` the order of
tries, `within` and `between` lay the channels of one try. Begin with `channels`.
"""
