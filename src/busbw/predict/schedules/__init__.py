"""Schedules of collectives and the two ways to time them: what each rank does, in which order, and after what.

`description` says what a schedule is; `rings`, `trees` and `exchanges` write those of each algorithm; `timing` gives
them rates and asks the core when they end, step by step or event by event; `leaves` says what the network between nodes
lets through.
"""
