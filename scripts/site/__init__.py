"""The site: what the matrix knows as static pages, and a page that checks in the browser (docs/site.md)."""
