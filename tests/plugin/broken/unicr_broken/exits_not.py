"""Can be imported, and holds nothing that unicr asks for."""


def nothing() -> None:
    """Not a command that anybody asked for."""
