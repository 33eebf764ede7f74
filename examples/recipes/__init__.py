"""Nine recipes for `playhead.compose`, each a block to copy and a `main` that shows it; `docs/guides/hooks.md` tells of all."""
