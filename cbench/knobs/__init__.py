"""`cbench screen knobs`: which settings of a profile matter on this host for this response?"""
