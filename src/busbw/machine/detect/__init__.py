"""Which platform a host is, and why.

Begin with `ladder`: firmware, then the cloud's metadata service, then hardware, then `unknown`.
"""
