"""The user's code against releases: what it needs, which releases have it, what of an environment does not."""
