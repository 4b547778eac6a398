"""The machine that is measured: topology, TLBs, counters, description."""
