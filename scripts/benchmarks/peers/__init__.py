"""The speed of a training step beside other trainers: `python scripts/benchmark.py peers`.

    subjects.py     the nets that are trained contestants.py who trains them: this package, torch, the products alone;
    and those of the three files below jax_nets.py     a model of ours in JAX jax_training.py its losses, optimizers,
    jit and scan classifiers.py  scikit-learn's and thinc's classifiers process.py      one contestant in a process of
    its own rounds.py       all of them, a round at a time: the table figure.py       the table as a figure
"""
