"""Error and congestion counters of ports, before and after tests, beside what the tests say.

Begin with `ports`: two readings of a port and what they differ by. `perfquery` reads what that tool prints; `evidence`
sets what counters show beside the answers of a sweep.
"""
