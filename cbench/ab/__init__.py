"""`cbench ab`: two or more arms in randomized blocks, with a copy of the first one as the noise floor."""
