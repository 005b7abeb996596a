"""Functions of packages from the registry, and mistakes that were mended in public; each with a verdict worked out.

Each module has RIGHT and WRONG. A module whose package isn't installed can't be imported.
"""
