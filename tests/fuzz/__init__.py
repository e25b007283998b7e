"""View and in-place fuzz: random chains of views and writes, on the device and on the CPU, compared exactly."""
