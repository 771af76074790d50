"""Reports and plans as HTML: one file that loads nothing, and parts of a page for notebooks and the site."""
