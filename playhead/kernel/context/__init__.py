"""What a model is sent of its past: long results shortened and kept at hand, old turns put together, repetition noticed.

Off unless an agent asks for it. All of it is a function of answers, results and recorded settings, so that a replay comes
to the same, and costs the same for each step, however many there are.
"""
