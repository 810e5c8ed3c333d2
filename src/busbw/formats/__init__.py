"""The formats of other tools: reading what they wrote, writing what they read. Pure: text in, values out."""
