"""Guards, one family per file: each condition stands next to the text that it shows."""
