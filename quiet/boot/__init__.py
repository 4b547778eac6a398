"""Set kernel command-line parameters, either for all later boots or for one boot."""
