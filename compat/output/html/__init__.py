"""Reports and plans as HTML: self-contained files, and fragments for notebooks and the site."""
