"""`python -m deltic.cli`, for when the command is not on PATH."""

from __future__ import annotations

import sys

from deltic.cli import main

sys.exit(main())
