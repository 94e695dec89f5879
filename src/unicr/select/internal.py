"""What other parts of unicr use of this package and users should not: it may change."""

from unicr.select._train import lost, taught, worth

__all__ = ["lost", "taught", "worth"]
