"""The machine busbw runs on, or one that was captured.

`capture` fetches text, `read` makes values of it, `detect` says which platform it is, `health` what is wrong with it.
Only `capture` is a door; the others are pure.
"""
