"""Whether the interconnect of a machine is as fast as it should be, and what to change if it is not."""

__version__ = "0.1.0"
