"""Resting-state fMRI: brain regions as tokens, one volume a sample, the regions' networks unknown
to the model.

`fetch.py` brings public data into a cache, `loaders.py` reads one's own, `preprocess.py` cleans
time series, and `task.py` puts them on the library's interface. Nothing here imports torch."""
