"""`python -m playhead`: the same as the `playhead` command."""

from playhead.cli.main import main

main()
