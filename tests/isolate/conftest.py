"""Hosts of the lab, for groups of them."""

from tests.lab.fixtures import hosts_of_session, lab

__all__ = ["hosts_of_session", "lab"]
