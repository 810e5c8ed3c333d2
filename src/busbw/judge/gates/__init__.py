"""Gates: measured points held against numbers that somebody wrote down. Begin with `deciding`."""
