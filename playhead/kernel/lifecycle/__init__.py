"""The lifecycle of runs: waits, control from outside, and an end that happens exactly once, whatever their code does.

`termination.py` decides how an agent ends; `supervision.py` runs it so that its code can be abandoned; `timer_thread.py` has the
deadlines; `threads.py` and `bodies.py` run code that cannot be stopped; `signals.py` and `steering.py` end and pause runs from
outside; `own_control.py` has the folder through which other processes control a run.
"""
