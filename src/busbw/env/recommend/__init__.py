"""What to set for a job on a platform: rules that judge what is published, one concern a module."""

from busbw.env.recommend.recipe import recommend

__all__ = ["recommend"]
