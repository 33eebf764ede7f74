"""Examples; each is run by a test."""
