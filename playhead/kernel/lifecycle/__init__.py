"""How runs begin to wait, are reached from outside, and end: whatever their code does, and each exactly once.

`termination.py` says how an agent ended, `supervision.py` runs it so that it can be left behind; `watch.py` has the deadlines,
`threads.py` and `bodies.py` what nobody can stop; `signals.py` and `steering.py` are the ways in from outside,
and `own_control.py` keeps the folder through which other processes come in.
"""
