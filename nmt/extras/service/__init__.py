"""Translation over HTTP: a queue that requests share, the routes, the pages. What translates is an ``Engine``."""
