"""Read a study's file, run the study's trials and store them."""
