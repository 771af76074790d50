"""Where people meet compat besides the command line: inside the program about to run, in test suites, in agents."""
