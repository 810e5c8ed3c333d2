"""Measuring: from a request to a run directory.

`plan` decides everything, a backend names the program, a launcher the command, `containers` wrap it, `execute` carries
it out. The program that is started is `busbw.rank`.
"""
