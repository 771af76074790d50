"""Entry points other than the command line: in training programs, test suites, schedulers and agents."""
