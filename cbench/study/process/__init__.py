"""Start, tag and end the processes of a study."""
