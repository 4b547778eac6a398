"""Programs that run inside a guest. They import no other part of the lab."""
