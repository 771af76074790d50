"""conda environments, conda-lock and pixi.lock."""
