"""What is run and how: launcher variables, command lines, scripts, notebooks and configuration files."""
