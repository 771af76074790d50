"""The policy layer: turns inputs and targets into reports and plans."""
