"""Tests of the room `fabric`."""
