"""Many runs, one verdict: see docs/guides/many-runs.md."""
