"""What measures: a backend names the program of a rank and reads what it wrote.

One module each, found by name in `registry`, as are those of other packages.
"""
