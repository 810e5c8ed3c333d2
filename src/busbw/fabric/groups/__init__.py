"""Faults that only collectives show: groups of nodes run side by side, and what they say about single nodes.

Begin with `splitting`: it asks for groups, has them run by a function given from outside, spreads the nodes of a bad
group over the sound ones, and names what confirmations show. `judging` says which group is bad, `combining` looks for
what only several nodes together show, `report` makes a value (`isolation`) of it, `simulation` is
a machine whose faults are known.
"""
