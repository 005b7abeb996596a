"""Each class of layers and losses beside torch's, alone: the time and the memory of forward and backward."""
