"""What the machine's model says: devices, cycles, latencies, memory."""
