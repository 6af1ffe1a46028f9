"""Resting-state fMRI: brain regions are tokens, volumes are samples, networks are not shown.

`fetch.py` brings public data into a cache, `loaders.py` reads one's own, `preprocess.py` cleans
time series, and `task.py` puts them on the library's interface. Nothing here imports torch.
"""
