"""Views of a trace for people: debrief, diff, statistics, timeline. Nothing here runs an agent."""
