"""Plans: how they are asked for, read, ordered, carried out and mended. The story is in `strategies/plan_execute_reflect.py`."""
