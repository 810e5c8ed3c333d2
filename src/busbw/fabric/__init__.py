"""A whole fabric from tests of its pairs: what is tested in which round, and which node, NIC, rail or link is bad.

Begin with `procedure`: it asks for rounds (`schedule`), has them measured by a function given from outside, fits the
model (`inference`), asks for more rounds about what it suspects, and names what the retests confirm (`naming`; of
links and leaves `between`) as `answers`. A stored result takes the same way without retests. `places` says where the
tested endpoints stand, `bands` separates latencies by hops, `simulation` is a fabric whose faults are known. `report`
judges, `views` is what is drawn of a sweep, `drawing` its lines in a terminal.
"""
