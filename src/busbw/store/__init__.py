"""The door to the disk: run directories, written so that a cut-off run still reads as what it is."""
