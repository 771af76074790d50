"""What install commands install, wherever they are written."""
