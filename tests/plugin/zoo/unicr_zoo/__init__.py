"""What a distribution of somebody else may bring to unicr."""
