"""``python -m mainstem``: the command line."""

import sys

from mainstem import main

if __name__ == "__main__":
    sys.exit(main())
