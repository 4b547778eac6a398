"""`quiet watch`: stays, and reports or repairs what drifts from the applied profile, as it happens."""
