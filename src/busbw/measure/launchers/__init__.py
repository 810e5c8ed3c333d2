"""What starts ranks: a launcher turns a program and its hosts into a job, as values.

One module each, found by name in `registry`, as are those of other packages; it starts nothing and looks at nothing but
what it is given. Begin with `launcher`, which says what each is, and `srun`, which is short.
"""
