"""`cbench screen knobs`: find the settings of a profile that matter on this host for a given response."""
