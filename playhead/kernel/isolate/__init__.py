"""Code in a process of its own: calls of `@tool(isolate=True)`, and programs that a model wrote.

`process.py` is this program's side, `guardian.py` the child's; `function.py` and `program.py` are what the child does.
"""
