"""One file for every form of data on disk; each declares its `READERS`, found by being here."""
