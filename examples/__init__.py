"""Programs that show the device at work; each is ordinary PyTorch."""
