"""The options that the parsers of command-line programs take, release by release."""
