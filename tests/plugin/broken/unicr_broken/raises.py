"""Fails when it is imported, in words of two lines."""

raise RuntimeError("first line\nsecond line")
