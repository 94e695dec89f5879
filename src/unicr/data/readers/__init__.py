"""One file for every form of data on disk; found by being here."""
