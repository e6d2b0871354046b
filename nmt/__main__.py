"""`python -m nmt`: the command line, for installations whose script is not on the path."""

from __future__ import annotations

from nmt.cli.app import main

if __name__ == "__main__":
    main()
