"""Plan, apply, verify and restore settings, with the journal that makes this safe."""
