"""Recipes: what somebody asks and what is known of a machine in, the files of a recipe out."""

from busbw.recipes.making import find, fitting_machine, make, release_of_nccl

__all__ = ["find", "fitting_machine", "make", "release_of_nccl"]
