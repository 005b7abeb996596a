"""ManualClassifier: a net that tells classes apart, in scikit-learn's form."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from nn_manual.arrays import Array
from nn_manual.estimators.network import Network
from nn_manual.losses import CrossEntropyLoss


class ManualClassifier(ClassifierMixin, Network):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier by a net whose gradients were derived by hand, and are compared with torch's in training.

        classifier = make_pipeline(StandardScaler(), ManualClassifier((64,), epochs=50, random_state=0))
        classifier.fit(X, y).score(X_test, y_test)

    It lowers CrossEntropyLoss. `classes_` has the classes, which may be names, `model_` the Sequential, and `history_`
    a dict for each epoch, as Trainer.fit returns them.

    hidden_layer_sizes : the outputs of each hidden Linear layer, or of the one that there is.
    activation : the layer after each of them: a class, called without arguments. It may be a layer of your own.
    layers : in the place of these two, a function (num_inputs, num_outputs) that returns the layers of the net: one
        example has shape (num_inputs,), and the last layer puts out num_outputs numbers.
    optimizer : a class, or a function, called as optimizer(model, lr=lr).
    lr, batch_size, epochs : as in Trainer.fit. A batch has no more examples than there are.
    patience : stop after so many epochs in which the validation loss didn't fall, and take the weights of the best one.
    validation_fraction : the part of the examples that is held out for that. Without a patience, all are trained on.
    check_every : how many steps apart are those proven against torch; 1, the default, proves each; 0 never loads torch.
    random_state : an int, for the same result in each call; None; or a numpy RandomState.
    verbose : show a bar, and a line for each epoch.

    The net has the dtype of the X that it is fitted to: float32 or float64, and float64 for any other.

    `fit` raises GradientMismatch where a gradient is wrong, NotFiniteError where a number overflows, and ValueError for
    an X with NaN or infinity and a y with one class alone.
    """

    _loss = CrossEntropyLoss

    def fit(self, X: Any, y: Any) -> ManualClassifier:  # noqa: N803 - scikit-learn's names
        """Train a new net on X (examples, features) and y (examples,): classes as numbers or names. Returns itself."""
        with self._unchanged_by_failure():
            X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])  # noqa: N806 - as above
            check_classification_targets(y)
            classes, labels = np.unique(y, return_inverse=True)
            if len(classes) < 2:
                raise ValueError(f"y has one class alone, {classes.tolist()[0]!r}: there is nothing to tell apart")
            counts = np.bincount(labels)
            if self.patience is not None and counts.min() < 2:
                name = classes.tolist()[int(counts.argmin())]
                words = "with a patience, each class needs one that is held out"
                raise ValueError(f"class {name!r} has one example: {words}")
            self.model_, self.history_ = self._train(X, labels.astype(np.int64), len(classes), stratify=y)
            self.classes_ = classes
        return self

    def predict_proba(self, X: Any) -> Array:  # noqa: N803 - as above
        """The probability of each class, (examples, classes), in the order of `classes_`."""
        probabilities: Array = softmax(self._outputs(X), axis=1)
        return probabilities

    def predict_log_proba(self, X: Any) -> Array:  # noqa: N803 - as above
        """The logarithms of `predict_proba`, which keep their digits where a probability is nearly 0."""
        logarithms: Array = log_softmax(self._outputs(X), axis=1)
        return logarithms

    def predict(self, X: Any) -> Array:  # noqa: N803 - as above
        """The likeliest class of each example, (examples,)."""
        likeliest = self._outputs(X).argmax(axis=1)
        predicted: Array = self.classes_[likeliest]
        return predicted
