"""One file for each method of training: the loss it takes, and where it comes from."""
