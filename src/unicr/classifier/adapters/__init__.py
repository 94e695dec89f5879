"""One file for every kind of model; each declares its `ADAPTERS`, found by being here."""
