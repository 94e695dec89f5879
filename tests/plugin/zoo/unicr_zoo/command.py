"""`unicr zoo`: what this distribution knows of a family."""

from __future__ import annotations


def zoo(family: str = "student") -> int:
    """A family, a rule, an adapter, an attack and a command from outside.

    It prints the example of a family. Example: unicr zoo student

    Parameters
    ----------
    family
        Its name.
    """
    from unicr.noise import FAMILIES

    print(f"an animal: {FAMILIES[family].example}")
    return 0
