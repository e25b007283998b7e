"""Device faults: a plugin that fails on request, and what must hold when it does."""
