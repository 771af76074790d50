"""Evidence for the bounds of rules: what released source says on both sides, and where fixes lead."""
