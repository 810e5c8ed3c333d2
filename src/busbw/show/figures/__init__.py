"""Figures as values in Plotly's words, and their drawing as SVG and PNG.

Begin with `series`; `drawing` needs no browser.
"""
