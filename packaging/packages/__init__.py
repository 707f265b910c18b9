"""How Watchfloor's packages are made: staged files, generated documents, an SBOM, and nfpm's description of each package."""
