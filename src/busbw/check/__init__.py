"""What nodes are checked for, and what is concluded: values in, values out.

Begin with `profiles`, which reads what a site asks for; `judging` holds each node against it, against the other nodes
and against its own past; `draining` writes the lists of those that should take no jobs; `history` counts failures.
"""
