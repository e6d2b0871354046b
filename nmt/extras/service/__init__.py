"""Translation over HTTP: a queue that requests share, the routes, the pages. An ``Engine`` translates."""
