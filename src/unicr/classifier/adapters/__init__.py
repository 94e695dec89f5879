"""One file for every kind of model; found by being here."""
