"""Mutants of recurrent layers, and of other layers with lengths, that compute the same: each with the proof."""

# ruff: noqa: E501 - a line of the package is cited as it is

from __future__ import annotations

from benchmarks.mutation.survivors_of_activations import COMMUTES, SAME_SIGN

EACH_ROW = "a product with a matrix multiplies each row, whichever dimensions the rows are in"
TWO_AXES = "two axes change places, whichever is named first"
SWAPPED = "a product of two numbers stays the same when the two are swapped"
FIRST_HIDDEN = "the hidden state of the first time step is 0, and in all others the previous matrix is the same"
WRITTEN = "each element of the array is written before it is read"
LEFT_OVER = "NumPy takes any negative number for the dimension that is left over"
ITS_SHAPE = "the mask depends on the shape of the input, and on none of its numbers"
PADDED = (
    "an input past the end of its sequence changes no output that counts, and has no gradient; tests/layers/"
    "test_padded_recurrent.py has infinite ones, which would"
)

ONE_WAY = "with one way nothing is turned, and nobody calls what turns"
ITS_TIMES = "the numbers of the times depend only on how many there are, and `previous` keeps nothing of another shape"
TURNED = "turned = np.where(mask[:, :, 0].T, mask.sum(axis=(1, 2)) - 1 - now, now)"

FEW_LAYERS = "a whole number below 1,000 is below another one exactly where 1e-8 more is, or a thousandth of itself"
OTHER_LAYER = "the two layers run in turn, their gradients have other sizes, and `previous` keeps nothing of another shape"
INPUTS = "grad = np.add(*grad_inputs) if self.bidirectional else grad_inputs[0]"
OUTPUTS = "output = np.concatenate(outputs, axis=2) if self.bidirectional else outputs[0]"
GRU_STATE = "h = np.add((1 - z) * n, z * h, out=output[t])"
GRU_BEFORE = "grad_h = grad_b[t].reshape(len(grad_h), 3 * self.hidden_size) @ weight_hh + grad_h * z[t]"
GRU_SHAPE = "shape = (*grad_output.shape[:2], 3 * self.hidden_size)"
GRU_GRAD = "np.multiply(dh_da[t], grad_h[:, np.newaxis], out=grad_a[t])"
GRU_GRAD_N = "np.multiply(dh_db_n[t], grad_h, out=grad_b[t, :, 2])"
RNN_GRAD = "np.multiply(dh_dz[t], grad_output[t] + grad_h, out=grad_z[t])"
RNN_SLOPE = "return 1 - h * h if self.nonlinearity == 'tanh' else h > 0"
NONLINEAR = "return np.tanh(z, out=out) if self.nonlinearity == 'tanh' else np.maximum(z, 0, out=out)"

VIEWS = "dc_dz, dgated_dz_o = (derivatives[:, :, :3], derivatives[:, :, 3])"
STACKED = "output, saved = self.stacked(kept(input, mask).swapaxes(0, 1), self._turn(mask), masks)"
KEPT = "return (kept(output.swapaxes(0, 1), mask), (mask, saved))"

VALUES = "np.array(self.value, input.dtype, like=input)"
FILLED = f"return (np.where(mask, input, {VALUES}), mask)"

PADDED_TIMES = "a time past the end of its sequence changes none that counts; tests/layers/test_attention.py fills those with infinity"

CHANGES = ("* 1.001", "* 2", "+ 1e-08")
SAME_LARGEST = "which number is the largest stays the same when all grow alike"
INFINITE = "infinity stays infinity"
ROW_OF_PADDING = "the row of the padding is 0 and gets no gradient, and no other number of the weight is 0"
NO_WEIGHT = "a time that doesn't count weighs 0; tests/layers/test_time_pooling.py has padding that isn't finite"
TIME_LARGEST = "output = np.where(mask, input, -np.inf).max(axis=1)"
TIME_TIED = "tied = mask & (input == output[:, np.newaxis])"
TIME_SUM = "return ((weight * np.where(mask, input, np.zeros_like(input))).sum(axis=1), (weight, input.shape))"
INFER = "return kept(TransformerEncoderLayer.infer(self, kept(input, counts)), counts)"
BAG_KEPT = "return super()._kept(input) & self.mask(input)"
BAG_SHARE = "share = self._weight(input, found).astype(found.dtype)"
BAG_MEAN = "share = kept / np.maximum(kept.sum(axis=1, keepdims=True), 1)"
BAG_ROWS = "np.where(kept, found, -np.inf)"
BAG_LARGEST = f"largest = {BAG_ROWS}.swapaxes(1, 2).copy().argmax(axis=-1)"
BAG_FIRST = "share = np.where(kept, first, np.zeros_like(first))"
BAG_PADDING = "padding = -1 if self.padding_idx is None else self.padding_idx % self.num_embeddings"

#: The proof, as in survivors.py.
RECURRENT: dict[tuple[str, str, str], str] = {
    **{
        (method, "mask = self.mask(input)", f"mask = self.mask({mutated})"): ITS_SHAPE
        for method in ("PaddedGRU.run", "MaskedFill.forward")
        for mutated in ("-input", "input * 1.001", "input * 2", "input + 1e-08", "previous(self, input)")
    },
    ("PaddedGRU.run", STACKED, STACKED.replace("input, mask", "input, input")): PADDED,
    ("MaskedFill.forward", FILLED, FILLED.replace(VALUES, f"previous(self, {VALUES})")): "the values are a setting",
    **{
        (method, line, line.replace("swapaxes(0, 1)", "swapaxes(1, 0)")): TWO_AXES
        for method, line in (
            *(("PaddedGRU.run", STACKED), ("PaddedGRU.run", KEPT)),
            ("PaddedGRU.backward", "grad_output = kept(grad_output, mask).swapaxes(0, 1)"),
            ("PaddedGRU.backward", "return grad_input.swapaxes(0, 1)"),
        )
    },
    **{
        (f"LSTM.{method}", line, line.replace("4 * self", mutated)): LEFT_OVER
        for method, line in (
            ("one_way", "z = z.reshape(time, batch, 4 * self.hidden_size)"),
            ("one_way_backward", "grad_z = grad_z.reshape(*grad_output.shape[:2], 4 * self.hidden_size)"),
            ("one_way_backward", "grad_after = grad_z[t].reshape(len(grad_c), 4 * self.hidden_size) @ weight_hh"),
        )
        for mutated in ("4 * -self", "-4 * self")
    },
    **{
        ("LSTM.one_way", line, mutated): proof
        for line, mutated, proof in (
            ("z = rows(input) @ weight_ih.T", "z = input @ weight_ih.T", EACH_ROW),
            ("z[t] += h @ recurrent", "z[t] += h @ previous(self, recurrent)", FIRST_HIDDEN),
            ("np.add(f * c_before, i * g, out=c[t])", "np.add(i * g, f * c_before, out=c[t])", SWAPPED),
            ("h = np.multiply(o, tanh_c[t], out=output[t])", "h = np.multiply(tanh_c[t], o, out=output[t])", SWAPPED),
        )
    },
    **{
        (f"GRU.{method}", line, line.replace(part, mutated, 1)): proof
        for method, line, part, mutated, proof in (
            ("one_way", "a = rows(input) @ weight_ih.T", "rows(input)", "input", EACH_ROW),
            ("one_way", "a = a.reshape(time, batch, 3 * size)", "3 * size", "-3 * size", LEFT_OVER),
            ("one_way", "a = a.reshape(time, batch, 3 * size)", "3 * size", "3 * -size", LEFT_OVER),
            ("one_way", "b = h @ recurrent", "recurrent", "previous(self, recurrent)", FIRST_HIDDEN),
            ("one_way", GRU_STATE, "(1 - z) * n, z * h", "z * h, (1 - z) * n", COMMUTES),
            *(("one_way_backward", GRU_BEFORE, "3 * self", mutated, LEFT_OVER) for mutated in ("-3 * self", "3 * -self")),
            ("over_all_times", "grad_input: Array = rows(grad_ih) @ weight_ih", "rows(grad_ih)", "grad_ih", EACH_ROW),
            ("stacked", OUTPUTS, " if self.bidirectional else outputs[0]", "", "of one array, it makes an equal one"),
            ("stacked_backward", INPUTS, "np.add(*grad_inputs)", "previous(self, np.add(*grad_inputs))", OTHER_LAYER),
            ("stacked", OUTPUTS, "axis=2", "axis=-1", "an output has three axes: the last one is axis 2"),
            *(
                (method, f"k < len({masks})", "k", mutated, FEW_LAYERS)
                for method, masks in (("stacked", "masks"), ("stacked_backward", "saved.masks"))
                for mutated in ("k * 1.001", "k + 1e-08")
            ),
            ("one_way_backward", GRU_SHAPE, "3 * self", "-3 * self", LEFT_OVER),
            ("one_way_backward", GRU_SHAPE, "3 * self", "3 * -self", LEFT_OVER),
            ("one_way_backward", GRU_GRAD, "dh_da[t], grad_h[:, np.newaxis]", "grad_h[:, np.newaxis], dh_da[t]", SWAPPED),
            ("one_way_backward", GRU_GRAD_N, "dh_db_n[t], grad_h", "grad_h, dh_db_n[t]", SWAPPED),
        )
    },
    **{
        ("PaddedGRU._turn", line, line.replace(part, mutated)): proof
        for line, part, mutated, proof in (
            ("not self.bidirectional", "not self.bidirectional", "False", ONE_WAY),
            (TURNED, "now, now)", "now, previous(self, now))", ITS_TIMES),
            (TURNED, "- now", "- previous(self, now)", ITS_TIMES),
        )
    },
    **{
        (f"RNN.{method}", line, line.replace(part, mutated)): proof
        for method, line, part, mutated, proof in (
            ("one_way", "z = rows(input) @ weight_ih.T", "rows(input)", "input", EACH_ROW),
            ("one_way", "z_now = output[t] + h @ recurrent", "recurrent", "previous(self, recurrent)", FIRST_HIDDEN),
            ("one_way_backward", RNN_GRAD, "dh_dz[t], grad_output[t] + grad_h", "grad_output[t] + grad_h, dh_dz[t]", SWAPPED),
            ("_derivatives", RNN_SLOPE, "h > 0", "h * 1.001 > 0", SAME_SIGN),
            ("_derivatives", RNN_SLOPE, "h > 0", "h * 2 > 0", SAME_SIGN),
            ("_nonlinearity", NONLINEAR, "np.maximum(z, 0", "np.maximum(0, z", COMMUTES),
        )
    },
    **{
        ("LSTM.one_way_backward", line, mutated): SWAPPED
        for line, mutated in (
            (
                "np.multiply(dc_dz[t], grad_c[:, np.newaxis], out=grad_z[t, :, :3])",
                "np.multiply(grad_c[:, np.newaxis], dc_dz[t], out=grad_z[t, :, :3])",
            ),
            (
                "np.multiply(dgated_dz_o[t], grad_gated, out=grad_z[t, :, 3])",
                "np.multiply(grad_gated, dgated_dz_o[t], out=grad_z[t, :, 3])",
            ),
        )
    },
    **{
        ("LSTM._derivatives", VIEWS, VIEWS.replace(f"derivatives{part}", mutated)): WRITTEN
        for part in ("[:, :, :3]", "[:, :, 3]")
        for mutated in (
            *(f"-derivatives{part}", f"(-derivatives){part}"),
            *(f"derivatives{part} {change}" for change in ("* 1.001", "* 2", "+ 1e-08")),
            *(f"(derivatives {change}){part}" for change in ("* 1.001", "* 2", "+ 1e-08")),
            *(f"previous(self, derivatives{part})", f"previous(self, derivatives){part}"),
        )
    },
    ("PaddedCausalSelfAttention._attend", "counts = self.mask(input)", "counts = self.mask(-input)"): ITS_SHAPE,
    ("PaddedCausalSelfAttention._attend", "counts = self.mask(input)", "counts = self.mask(input * 1.001)"): ITS_SHAPE,
    ("PaddedCausalSelfAttention._attend", "counts = self.mask(input)", "counts = self.mask(input * 2)"): ITS_SHAPE,
    ("PaddedCausalSelfAttention._attend", "counts = self.mask(input)", "counts = self.mask(input + 1e-08)"): ITS_SHAPE,
    ("PaddedCausalSelfAttention._attend", "counts = self.mask(input)", "counts = self.mask(previous(self, input))"): ITS_SHAPE,
    ("PaddedCausalSelfAttention._attend", "output, saved = SelfAttention._attend(self, kept(input, counts), mask, counts)", "output, saved = SelfAttention._attend(self, kept(input, input), mask, counts)"): PADDED_TIMES,
    **{
        (f"PaddedTransformerEncoderLayer.{method}", "counts = self.mask(input)", f"counts = self.mask({mutated})"): ITS_SHAPE
        for method in ("forward", "infer")
        for mutated in ("-input", "input * 1.001", "input * 2", "input + 1e-08", "previous(self, input)")
    },
    ("PaddedTransformerEncoderLayer.infer", INFER, INFER.replace("kept(input, counts)", "kept(input, input)")): PADDED_TIMES,
    ("PaddedEmbeddingBag._kept", BAG_KEPT, "return self.mask(input) & super()._kept(input)"): COMMUTES,
    ("PaddedEmbeddingBag._kept", BAG_KEPT, BAG_KEPT.replace("mask(input)", "mask(previous(self, input))")): ITS_SHAPE,
    **{
        (f"EmbeddingBag.{method}", line, line.replace(part, mutated, 1)): proof
        for method, line, part, changes, proof in (
            ("forward", BAG_SHARE, "found)", ("found * 1.001)", "found * 2)", "found + 1e-08)"), SAME_LARGEST),
            ("_weight", BAG_MEAN, "kept.sum(axis=1, keepdims=True), 1", ("1, kept.sum(axis=1, keepdims=True)",), COMMUTES),
            *(
                ("_weight", BAG_LARGEST, part, tuple(f"({part} {change})" for change in CHANGES), SAME_LARGEST)
                for part in (f"{BAG_ROWS}.swapaxes(1, 2).copy()", f"{BAG_ROWS}.swapaxes(1, 2)", BAG_ROWS)
            ),
            ("_weight", BAG_LARGEST, "found, -", tuple(f"found {change}, -" for change in CHANGES), SAME_LARGEST),
            ("_weight", BAG_LARGEST, "-np.inf", tuple(f"-np.inf {change}" for change in CHANGES), INFINITE),
            ("_weight", BAG_LARGEST, "-np.inf", tuple(f"-(np.inf {change})" for change in CHANGES), INFINITE),
            ("_weight", BAG_LARGEST, "1, 2", ("2, 1",), TWO_AXES),
            ("_weight", BAG_LARGEST, "kept", ("found",), ROW_OF_PADDING),
            ("_weight", BAG_FIRST, "kept, first", ("first, kept", "found, first", "first, first"), ROW_OF_PADDING),
            ("_kept", BAG_PADDING, "-1", ("-1 * 1.001", "-1 * 2", "-1 + 1e-08"), "no index is below 0"),
        )
        for mutated in changes
    },
    **{
        (f"TimePool.{method}", line, line.replace(part, mutated, 1)): proof
        for method, line, part, changes, proof in (
            ("forward", "mask = self.mask(input)", "(input", ("(-input", "(input * 1.001", "(input * 2", "(input + 1e-08"), ITS_SHAPE),
            ("forward", "mask = self.mask(input)", "(input", ("(previous(self, input)",), ITS_SHAPE),
            ("forward", TIME_LARGEST, "-np.inf", tuple(f"-np.inf {change}" for change in CHANGES), INFINITE),
            ("forward", TIME_LARGEST, "-np.inf", tuple(f"-(np.inf {change})" for change in CHANGES), INFINITE),
            ("forward", TIME_TIED, "mask & (input == output[:, np.newaxis])", ("(input == output[:, np.newaxis]) & mask",), COMMUTES),
            ("forward", TIME_SUM, "where(mask", ("where(input", "where(weight"), NO_WEIGHT),
            ("forward", TIME_SUM, "np.zeros_like(input)", ("np.zeros_like(input) + 1e-08",), NO_WEIGHT),
            ("_weight", "return np.not_equal(mask, followed)", "mask, followed", ("followed, mask",), COMMUTES),
        )
        for mutated in changes
    },
}
