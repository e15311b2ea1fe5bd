"""Plans, one family per file. A plan reads like its row in facts/datamesh 3.5-3.13, in the form of decisions 3-6."""
