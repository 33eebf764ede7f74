"""The same tool tasks on a real model, through a bare loop and through Playhead's kernel, paired.

    python -m benchmarks.real_tasks paired --tasks 3 --repeats 1        # a quick look
    python -m benchmarks.real_tasks paired                              # the whole of it; `make test-real` runs it, too
    python -m benchmarks.real_tasks strategies --write docs/choosing-a-strategy.md

| file | holds |
|---|---|
| `tools.py`, `tasks.py` | nine tools, 38 tasks, and what counts as right |
| `bare_loop.py` | the loop that a competent person writes in forty lines |
| `setting.py` | what both are given: the same prompt, turns, tools, parameters and limits |
| `arms.py` | the two ways to run a task, and the strategies |
| `harness.py` | which runs there are, in which order, and what is kept of them |
| `figures.py` | rates, the paired difference and its interval |
| `report.py` | tables for people and for the docs |
"""
