"""The one way to run: `Agent`, what a run returns, and how to follow, steer and talk with it."""
