"""What starts ranks: a launcher turns a program and its hosts into a job, as values.

One module each; it starts nothing and looks at nothing but the `Start` it is given. Begin with `srun`, which is short.
"""
