"""The container that ranks run in: a runtime turns a program into one that starts inside an image.

One module each; begin with `place`, what each is given.
"""
