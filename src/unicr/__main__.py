"""`python -m unicr` is the `unicr` command."""

from unicr.cli import main

main()
