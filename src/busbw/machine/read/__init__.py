"""What was captured, read: text in, values out.

No file is opened here. One module a source of text; begin with `hardware`.
"""
