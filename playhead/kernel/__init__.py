"""The loop: state, messages, ports, session, tools, strategies, model adapters."""
