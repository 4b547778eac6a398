"""The bundled profiles, as TOML files."""
