"""`quiet watch`: stays, and tells or repairs what drifts from the applied profile, as it happens."""
