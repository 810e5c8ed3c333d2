"""The door to the machine: the only modules that ask the kernel, programs and the network what this host is.

What they return is text as it was found, or a value of `model.machine`. Begin with `snapshot`.
"""
