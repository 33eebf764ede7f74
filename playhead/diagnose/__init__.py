"""Reading what happened: projections of a trace for people. Nothing here runs anything."""
