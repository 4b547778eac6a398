"""`quiet watch`: keeps running, and reports or repairs drift from the applied profile as it happens."""
