"""Golden values: radii, laws of the sampler and certificates that a rebuild must keep.

`python -m tests.golden` makes the files again; do that only where a change is meant and explained.
"""
