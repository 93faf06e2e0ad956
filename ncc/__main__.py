"""`python -m ncc` is `ncc`."""

from ncc.cli import main

main()
