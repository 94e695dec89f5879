"""One file for each source of the literature; its `FORMULAS` are found by being there."""
