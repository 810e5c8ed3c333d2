"""What follows from a topology: the paths through a node, how wide they are, what is near what.

By NCCL's own rules, for the version at hand. Begin with `view`.
"""
