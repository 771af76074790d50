# requires: trl peft
# command: trl env
# The script is not run: the command-line tool is.
