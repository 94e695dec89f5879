"""`python -m unicr.cli` is the `unicr` command."""

from unicr.cli import main

main()
