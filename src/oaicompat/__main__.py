"""`python -m oaicompat`."""

from __future__ import annotations

import sys

from oaicompat.cli import main

if __name__ == '__main__':
    sys.exit(main())
