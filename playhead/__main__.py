"""`python -m playhead`: the same as the `playhead` command.

Python puts the current folder first on the import path. It is removed, so nothing else is imported from it.
"""

import os
import sys
from contextlib import suppress

if not sys.flags.safe_path:
    with suppress(OSError, ValueError):  # the folder was deleted, or was never on the path
        sys.path.remove(os.getcwd())  # noqa: PTH109 - the very text that Python put there

from playhead.cli.main import main

main()
