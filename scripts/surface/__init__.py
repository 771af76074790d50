"""The surface miner: what published releases define and use of one another, read out of their source. Nothing is run."""
