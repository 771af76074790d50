"""The surface miner: the names that published releases define and use from one another, read from source without running it."""
