"""Where the runs of a sweep are worked on: this machine's processes, or Ray."""
