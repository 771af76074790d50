"""Changes to files: ``dispatch`` makes the edits, ``files`` shows and writes them, ``commands`` says what to run then."""
