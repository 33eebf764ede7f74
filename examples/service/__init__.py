"""A service whose agent has five killswitches: `app` is the HTTP, `tenant` the agent and its limits, `shop` its tools."""
