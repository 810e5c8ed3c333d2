"""What was captured, read: text in, values out. No file is opened here."""
