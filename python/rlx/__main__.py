"""`python -m rlx` is the command `rlx`."""

import sys

from rlx.cli import main

sys.exit(main())
