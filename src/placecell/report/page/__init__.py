"""The interactive page: one self-contained file, or served live."""
