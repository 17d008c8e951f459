"""``python -m mainstem``: the command line."""

import sys

from mainstem import main

sys.exit(main())
