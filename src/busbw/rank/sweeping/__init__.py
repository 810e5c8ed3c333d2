"""A sweep over the pairs of a fabric, by its ranks: begin with `fabric`.

`star` is how rank 0 and the others talk, `counting` reads the counters of a host's ports.
"""
