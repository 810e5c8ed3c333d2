"""The checks that a node allows without a job: what was captured of it in, findings out.

Begin with `examination`, which lists them; `node` is what each is given.
"""
