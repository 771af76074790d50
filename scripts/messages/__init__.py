"""Mines the messages that releases can raise, warn of or log, for ``matrix/messages/``."""
