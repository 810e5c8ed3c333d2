"""A node as NCCL sees it: read from its topology files, made, drawn, compared and checked.

`file` reads and writes NCCL's files, `origins` makes a `model.topology.Topology` of a file, a platform or a host,
`paths` finds the ways through it, `ranks` places ranks on it, `rules` are those of `busbw topo check`. Begin with
`check`.
"""
