"""The values busbw computes with. All frozen; all JSON as they stand.

No rule and no file access lives here; imports `base` alone. Begin with `plan`, what will be done, and `run`, what
came of it. `codec` turns values into JSON and back.
"""
