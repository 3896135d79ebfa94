"""The Ray engine: worker groups as actors of a Ray cluster. The only package that imports Ray."""
