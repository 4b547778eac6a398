"""The machine that is measured: topology, TLBs, interrupts, description."""
