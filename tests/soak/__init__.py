"""Long runs: many threads on one device, and many training steps without growth."""
