"""Common mistakes in layers that are made of others, in bilinear maps, and in a whole net."""

from __future__ import annotations

from nn_manual.exercises.causes.common_mistakes.classes import COUPLED
from nn_manual.exercises.causes.common_mistakes.classes import MEAN as MEAN_LOSS
from nn_manual.exercises.causes.common_mistakes.normalizations import (
    BOTH,
    DEVIATION,
    MEAN,
    SLOPE_FOR_WEIGHT,
    VARIANCE,
    WEIGHT,
)
from nn_manual.exercises.causes.common_mistakes.sequences import MASK_FIRST, PADDED_OUTPUT, TRUE_COUNTS

WAYS = "The input goes all ways, and the gradients of the ways add."
ORDER = "The parts of grad_output lie in the order of the branches, as their outputs do."
OF_WAYS = {
    "grad_input + way => way": f"The last branch's way alone is left. {WAYS}",
    "without the line `grad_input = grad_input + way`": f"The first branch's way alone is left. {WAYS}",
    "with `grad_input * way` in the place of `grad_input + way`": WAYS,
}
BATCH = "Each example uses the same parameter: the gradients are added over the batch, without a mean."
PRODUCT_RULE = "d (gate up) = up d gate + gate d up: each factor's gradient has the other one as a factor."
OTHER_WAY = "is missing: the input goes two ways, and their gradients add."
ONE_WAY = "The layers run one after the other, so there is one way: nothing goes round a layer."
PRODUCT = "grad_product is what down_proj.backward returns for grad_output: the gradient of gate * up."
ONE_PRODUCT = (
    "A feature is in two kinds of products: in some as the first factor, in others as the second. One kind is missing."
)
TRANSPOSED = (
    "weight[o, i, j] and weight[o, j, i] are two numbers: a feature has one of them where it is the first factor of a "
    "product, and the other where it is the second."
)

MISTAKES: dict[str, dict[str, str]] = {
    "residual": {
        "without `grad_output`":
            "The straight way is missing: the input is added to what the branch makes of it, so grad_output comes back "
            "as it is, too.",
        "without `+ super().backward(saved, grad_output)`": "The way through the branch is missing.",
        "plus `grad_output`": "The input goes the straight way once: grad_output is added once.",
        "divided by 2": "The input goes two ways, and their gradients add: there is no mean.",
        "with `grad_output * super().backward(saved, grad_output)` in the place of `grad_output + "
        "super().backward(saved, grad_output)`":
            "The two ways are side by side: their gradients are added. Along one way they would be multiplied.",
    },
    "sum_layer": {
        **OF_WAYS,
        "self.summed(saved[0], [grad_output] * len(self.branches)) => self.summed(saved[0], [grad_output] * "
        "len(self.branches)) / len(self.branches)":
            f"Each branch gets all of grad_output, not a share of it. {WAYS} There is no mean.",
    },
    "concat": {
        **OF_WAYS,
        "self.summed(saved_of_branches, grads) => self.summed(saved_of_branches, grads) / len(self.branches)":
            f"{WAYS} There is no mean.",
        "self.summed(saved_of_branches, grads) => self.summed(saved_of_branches, grads[::-1])": ORDER,
        "pairwise(accumulate(sizes, initial=0)) => [(sum(sizes[i + 1:]), sum(sizes[i:])) for i in range(len(sizes))]":
            ORDER,
    },
    "swi_glu": {
        "without the `self.activation.backward` of `self.activation.backward(of_activation, grad_product * up)`":
            "gate is the activation's output: on the way to gate_proj, its gradient goes back through the activation.",
        "with `up` in the place of `gate`, and with `gate` in the place of `up`": PRODUCT_RULE,
        "with `up` in the place of `gate`": PRODUCT_RULE,
        "with `gate` in the place of `up`": PRODUCT_RULE,
        "without `* up`": PRODUCT_RULE,
        "without `* gate`": PRODUCT_RULE,
        "without the `self.down_proj.backward` of `self.down_proj.backward(of_down, grad_output)`": PRODUCT,
        "with `grad_output` in the place of `grad_product`": PRODUCT,
        "without `+ self.up_proj.backward(of_up, grad_product * gate)`": f"The way through up_proj {OTHER_WAY}",
        "without `self.gate_proj.backward(of_gate, grad_opened)`": f"The way through gate_proj {OTHER_WAY}",
    },
    "transformer_encoder": {
        "zip(reversed(self.chain), reversed(saved), strict=True) => zip(self.chain, saved, strict=True)":
            "The way back begins at the last layer: at first, the gradient of its output alone is known.",
        "with `grad_output` in the place of `grad`, in grad":
            "Each layer takes the gradient of its own output, which the layer behind it returns: grad_output is that "
            "of the last one alone.",
        "without the line `grad = layer.backward(layer_saved, grad)`":
            "grad_output is the gradient of the last layer's output: it goes back through all layers.",
        "layer.backward(layer_saved, grad) => grad + layer.backward(layer_saved, grad)": ONE_WAY,
        "plus `grad_output`": ONE_WAY,
        "zip(reversed(self.chain), reversed(saved), strict=True) => zip(reversed(self.layers), "
        "reversed(saved[:len(self.layers)]), strict=True)":
            "The norm behind the layers has a way back, too, and it comes first.",
    },
    "padded_transformer_encoder_layer": {
        "with `grad_output` in the place of `kept(grad_output, counts)`": PADDED_OUTPUT,
        "TransformerEncoderLayer.backward(self, of_layers, kept(grad_output, counts)) => "
        "kept(TransformerEncoderLayer.backward(self, of_layers, grad_output), counts)": MASK_FIRST,
        "kept(grad_output, counts) => kept(grad_output, ~counts)": TRUE_COUNTS,
    },
    "bilinear": {
        "without `+ mixed.mT`": ONE_PRODUCT,
        "without `mixed`": ONE_PRODUCT,
        "with `mixed` not transposed": TRANSPOSED,
        "with `mixed` transposed": TRANSPOSED,
        "with the mean in the place of the sum in `grads.T @ products`": BATCH,
        "with `mean` in the place of `sum`": BATCH,
    },
    "whole_net": {
        "without the factor `2`": "The derivative of d**2 is 2 d.",
        "without `/ prediction.size`": MEAN_LOSS,
        "with `prediction.shape[0]` in the place of `prediction.size`":
            "The mean is over all numbers of the prediction, not over the rows.",
        "without `- (grad_prediction * prediction).sum(axis=-1, keepdims=True)`": COUPLED,
        "without the `sum` of `(grad_prediction * prediction).sum(axis=-1, keepdims=True)`":
            f"p (1 - p) is the diagonal of the Jacobian alone. {COUPLED}",
        "without the power in `output_2 ** 2`": "tanh' = 1 - tanh**2, and output_2 is the tanh.",
        "with `output_1` in the place of `output_2`, in grad_output_1":
            "output_2 is tanh(output_1), and tanh' = 1 - tanh**2.",
        "with `output_1` in the place of `output_2`, in grad_weight_3": "weight_3 multiplies output_2, not output_1.",
        "without `- normalized_1 * projection_1`": VARIANCE,
        "without `- grad_normalized_1.mean((-1,), keepdims=True)`": MEAN,
        "with `grad_normalized_1` alone of `grad_normalized_1 - grad_normalized_1.mean((-1,), keepdims=True) - "
        "normalized_1 * projection_1`": BOTH,
        "without `* weight_1`, in grad_normalized_1": WEIGHT,
        "without `/ std_1`, in grad_output_0": DEVIATION,
        "without `* normalized_1`, in grad_weight_1": SLOPE_FOR_WEIGHT,
        "with the mean in the place of the sum in `grad_output_0.T @ input`": BATCH,
        "with the mean in the place of the sum in `grad_output_3.T @ output_2`": BATCH,
        **{
            f"with `mean` in the place of `sum`, in {name}": BATCH
            for name in ("grad_weight_1", "grad_bias_0", "grad_bias_1", "grad_bias_3")
        },
    },
}
