"""`quiet watch`, which keeps running and reports or repairs drift from the applied profile."""
