"""`python -m agentos.cli` is the command `agentos`."""

import sys

from agentos.cli.main import main

sys.exit(main())
