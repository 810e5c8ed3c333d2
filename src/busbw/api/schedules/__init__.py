"""Schedules of collectives in forms of other programs; `exchanging` reads, times and writes them."""
