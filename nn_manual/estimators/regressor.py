"""ManualRegressor: a net that predicts numbers, in scikit-learn's form."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from nn_manual.arrays import Array
from nn_manual.estimators.network import Network
from nn_manual.losses import MSELoss


class ManualRegressor(RegressorMixin, Network):  # type: ignore[misc]  # scikit-learn has no types
    """A regression by a net whose gradients were derived by hand, and are compared with torch's in training.

        net = make_pipeline(StandardScaler(), ManualRegressor((64,), random_state=0))
        regressor = TransformedTargetRegressor(net, transformer=StandardScaler())
        regressor.fit(X, y).score(X_test, y_test)

    It lowers MSELoss. It doesn't standardise y: a net learns a target in large units slowly, so scikit-learn's
    TransformedTargetRegressor does it above. `model_` has the Sequential, and `history_` a dict for each epoch, as
    Trainer.fit returns them. The settings are those of ManualClassifier.

    `fit` raises GradientMismatch where a gradient is wrong, NotFiniteError where a number overflows, and ValueError for
    an X or a y with NaN or infinity.
    """

    _loss = MSELoss

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> ManualRegressor:  # noqa: N803 - scikit-learn's names
        """Train a new net on X (examples, features) and y (examples,) or (examples, targets). Returns itself."""
        with self._unchanged_by_failure():
            X, y = validate_data(  # noqa: N806 - as above
                self, X, y, dtype=[np.float64, np.float32], multi_output=True, y_numeric=True
            )
            target = np.asarray(y, X.dtype).reshape(len(X), -1)
            self.model_, self.history_ = self._train(X, target, target.shape[1], stratify=None)
            self._has_one_target = y.ndim == 1
        return self

    def predict(self, X: Any) -> Array:  # noqa: N803 - as above
        """The predicted numbers, (examples,) or (examples, targets), as y was."""
        outputs = self._outputs(X)
        return outputs[:, 0] if self._has_one_target else outputs
