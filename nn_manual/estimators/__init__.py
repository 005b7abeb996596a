"""Models in scikit-learn's form: for its pipelines, searches and scores."""
