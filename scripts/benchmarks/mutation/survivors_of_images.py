"""Mutants of the layers of images that compute the same: each with the proof."""

# ruff: noqa: E501 - a line of the package is cited as it is

from __future__ import annotations

from benchmarks.mutation.survivors_of_activations import COMMUTES
from benchmarks.mutation.survivors_of_losses import OF_ARRAY
from benchmarks.mutation.survivors_of_recurrent import LEFT_OVER

NO_DIVISOR = "AvgPool1d has no divisor of its own"
ALL_COUNT = "counted one by one, all numbers of each window count: nothing lies beyond the frame, which counts, too"
SAME_NUMBER = "it is the same number each time"
ONE_DIMENSION = "the kernel has one dimension: its size is the product, and has the shape (1,)"
READ_ONCE = "the sizes are read once, whether they are a tuple or a generator"

FIRST_INSIDE = "np.full_like(first, self.windows.first_inside(num_windows), np.min_scalar_type(len(others)))"

OF_SHAPE = "it depends on the shape of the input alone"

SAME_AXIS = "of three axes the middle one stays: it is that of the channels, and all others are gone through alike"

BIAS_SUM = "np.sum(grad_output, axis=(0, *range(2, grad_output.ndim)), out=self.grad.bias)"
ADD_BIAS = "output += self.param.bias[:, *[np.newaxis] * self.num_dims]"

COLUMNS = "return columns.reshape(len(images), images.shape[1] * self.kernel, math.prod(num_windows))"
CHANNELS = "channels = columns.shape[1] // self.kernel"
OTHER_INPUTS = ("-input", "input * 1.001", "input * 2", "input + 1e-08", "previous(self, input)")
ITS_SHAPE = "how much a window counts depends on the shape of the input, and on none of its numbers"
NO_ZERO = "a number is 0 exactly where its multiple is"
ALL_INSIDE = "without ceil_mode, each window lies in the image, and its size divided by how many of its numbers do is 1"
POWER_OUTPUT = "output: Array = (total * self._scale(input)) ** (1 / self.norm_type)"
POWER_PART = "part, norm = (masked(grad_output * self._scale(input), has_slope), np.where(has_slope, output, 1))"
POWER_SIZE = "size = np.asarray(math.prod(self.windows.kernel), input.dtype)"
POWER_SCALE = "scale: Array = size / self.windows.counts(input.shape[2:], self.output_shape(input.shape)[2:], input.dtype)"
WHOLE_SIZES = "a scale_factor makes whole sizes, so that 1 / factor = size / output_size, but for the last digit"
ROUNDED_DOWN = "the index is rounded down, and no place of these examples lies within a thousandth below a whole number"
COUNTED = "the places are counted, and `previous` keeps nothing of another shape"
BEFORE_THE_FIRST = "of a place before the first number, both neighbours are clipped to it, and their weights sum to 1"
ALIGNED = "place = number * dtype.type((size - 1) / max(output_size - 1, 1))"
CENTERED = "place = dtype.type(scale) * (number + dtype.type(0.5)) - dtype.type(0.5)"
ONE_AXIS = "of one axis, both orders are the same; the tests of the layer have images and volumes"
NEXT_BINS = "what is written to the bins behind is written again in their turn"
NO_AXIS_BEHIND = "behind the last axis there is none, and a negative number makes an empty list, too"
NO_NAN = "no input of the check has a number that is none; tests/layers/test_pooling.py has"
BINS_AND_PLACES = "zip(self.bins(input_shape), reversed(places), strict=True)"
OF_BIN = "of_bin = along(axis, slice(number, number + 1))"
TAKE_PLACE = "np.maximum(place, takes * place.dtype.type(number), out=place)"
NUM_BEHIND = "(grads.ndim - 1 - axis)"
BEHIND_LAST = f"places = np.arange(first, end).reshape(-1, *[1] * {NUM_BEHIND})"
NONE_BEHIND = (
    *(f"-{NUM_BEHIND}", f"({NUM_BEHIND} * 2)", "(axis - (grads.ndim - 1))", "(-(grads.ndim - 1) - axis)", "(1 - axis)"),
    *("(1 - grads.ndim - axis)", "(grads.ndim - 1 - axis * 2)", "(-grads.ndim - 1 - axis)", "(grads.ndim - 1 * 2 - axis)"),
)
SAME_WINDOWS = "the windows of these examples begin at the same numbers: what is rounded down is far from the next whole number"
OTHER_DIMENSION = "one dimension's numbers come after the other's, in another shape, and `previous` keeps nothing of another shape"
BELOW_THE_LAST = "no window but the last one, which is given `last`, begins at `last` or behind it: which whole numbers follow doesn't matter"
FLAT = "without an axis, `take` goes through all numbers, as through the flat ones"
MORE = "more dimensions of size 1 stand before the images, and the last line makes the shape in any case"
TWO_DIMENSIONS = "an image has two dimensions: 2 - 1 = 1; tests of the layer have volumes"
DRAWN_SAMPLES = "samples = np.full_like(input, 0.5, order='C', shape=self.noise_shapes(input.shape)['samples'])"
EVALUATED = "return self._largest(input, self._corners(input.shape, samples))[0]"
CORNER = "corner = np.arange(0, math.prod(input_shape), max(1, math.prod(size)))"
MOVED_CORNER = "corner = corner + first.reshape(counts[axis], *[1] * behind, -1) * math.prod(size[axis + 1:])"
SAMPLE = "sample = samples[:, :, self.sample_of[axis]].ravel()"
STEP = "step = sample.dtype.type(last) / sample.dtype.type(max(1, count - 1))"
WHOLE_NUMBERS = "whole = np.arange(1, last + 2, dtype=sample.dtype)"
REACHED = "reached = ((number + sample) * step)[:, :, np.newaxis] >= whole"
DRAWN = "drawn = reached.sum(axis=-1) - ((sample * step)[:, np.newaxis] >= whole).sum(axis=-1)"
FIRST = "first: Array = np.where(number == count - 1, last, drawn)"
UP_SCALE = "scale = size / output_size if self.scale_factor is None else 1 / factor"
UP_ADD = "np.add.at(matrix, (np.arange(output_size), np.clip(neighbour, 0, size - 1)), weight)"
PLACE = "number.astype(np.float32) * np.float32(scale)"
NEAREST = f"nearest = np.floor({PLACE})"

#: The proof, as in survivors.py.
IMAGES: dict[tuple[str, str, str], str] = {
    ("AvgPool1d._count", "self.divisor is not None", "False"): NO_DIVISOR,
    ("AvgPool1d._count", "self.count_include_pad and (not self.ceil_mode)", "False"): ALL_COUNT,
    (
        "AvgPool1d._count",
        "return np.asarray(math.prod(self.windows.kernel), dtype)",
        "return previous(self, np.asarray(math.prod(self.windows.kernel), dtype))",
    ): SAME_NUMBER,
    (
        "AvgPool1d._count",
        "return np.asarray(math.prod(self.windows.kernel), dtype)",
        "return np.asarray(self.windows.kernel, dtype)",
    ): ONE_DIMENSION,
    (
        "AvgPool1d._count",
        "size = tuple((n + 2 * frame for n, frame in zip(size, of_each(self.padding, self.num_dims), strict=True)))",
        "size = (n + 2 * frame for n, frame in zip(size, of_each(self.padding, self.num_dims), strict=True))",
    ): READ_ONCE,
    **{
        ("MaxPool1d.forward", f"place = {FIRST_INSIDE}", f"place = {mutated}"): SAME_NUMBER
        for mutated in (
            f"previous(self, {FIRST_INSIDE})",
            FIRST_INSIDE.replace(
                "self.windows.first_inside(num_windows)", "previous(self, self.windows.first_inside(num_windows))"
            ),
        )
    },
    **{
        (f"AdaptiveAvgPool1d.{method}", line, line.replace(part, f"previous(self, {part})", 1)): OF_SHAPE
        for method, line, part in (
            ("forward", "output = _along(matrix, output, axis)", "matrix"),
            ("backward", "grad_input = _along(matrix.T, grad_input, axis)", "matrix.T"),
            ("backward", "grad_input = _along(matrix.T, grad_input, axis)", "matrix"),
            ("matrices", "yield matrix", "matrix"),
        )
    },
    **{
        (f"{name}.{method}", line, line.replace(part, f"{part}.T")): SAME_AXIS
        for name, method, line, part in (
            *((name, "forward", "self._add_bias(output)", "output") for name in ("Conv1d", "ConvTranspose1d")),
            *(
                (name, "backward_parameters", "self._write_grad_bias(grad_output)", "grad_output")
                for name in ("Conv1d", "ConvTranspose1d")
            ),
            ("Conv1d", "_write_grad_bias", BIAS_SUM, "sum(grad_output"),
        )
    },
    ("Conv1d._add_bias", ADD_BIAS, ADD_BIAS.replace(" * self.num_dims", "")): "an image has one dimension",
    **{
        (f"Fold.{method}", line, line.replace(part, mutated)): LEFT_OVER
        for method, line, part, mutated in (
            ("columns", COLUMNS, "images.shape[1] * self", "-images.shape[1] * self"),
            ("columns", COLUMNS, "* self.kernel", "* -self.kernel"),
            ("images", CHANNELS, "columns.shape", "-columns.shape"),
            ("images", CHANNELS, "self.kernel", "-self.kernel"),
        )
    },
    **{
        (f"LPPool1d.{method}", line, line.replace(part, mutated, 1)): proof
        for method, line, part, changes, proof in (
            *(
                (method, line, "scale(input", tuple(f"scale({mutated}" for mutated in OTHER_INPUTS), ITS_SHAPE)
                for method, line in (("forward", POWER_OUTPUT), ("backward", POWER_PART))
            ),
            ("backward", "has_slope = output != 0", "output", ("-output", "output * 1.001", "output * 2"), NO_ZERO),
            ("backward", POWER_PART, "np.where(has_slope", ("np.where(output",), "a number is true where it isn't 0"),
            ("_scale", POWER_SIZE, "np.asarray(math.prod(self.windows.kernel), input.dtype)", ("previous(self, {})",), SAME_NUMBER),
            ("_scale", POWER_SIZE, "math.prod(self.windows.kernel)", ("self.windows.kernel",), ONE_DIMENSION),
            ("_scale", "not self.ceil_mode", "not self.ceil_mode", ("False",), ALL_INSIDE),
            ("_scale", POWER_SCALE, "size /", ("previous(self, size) /",), SAME_NUMBER),
        )
        for mutated in (change.format(part) for change in changes)
    },
    **{
        (f"Upsample.{method}", line, line.replace(part, mutated, 1)): proof
        for method, line, part, changes, proof in (
            ("matrices", UP_SCALE, " if self.scale_factor is None else 1 / factor", ("",), WHOLE_SIZES),
            ("matrices", UP_ADD, "neighbour, 0", ("0, neighbour",), "of the two, it takes the larger one, then the smaller one of that and the end"),
            ("matrices", "yield matrix", "matrix", ("previous(self, matrix)",), OF_SHAPE),
            ("_neighbours", NEAREST, NEAREST.removeprefix("nearest = "), ("{} * 1.001", "{} + 1e-08"), ROUNDED_DOWN),
            ("_neighbours", NEAREST, f"np.floor({PLACE})", (PLACE,), ROUNDED_DOWN),
            ("_neighbours", NEAREST, PLACE, ("{} * 1.001", "{} + 1e-08"), ROUNDED_DOWN),
            ("_neighbours", NEAREST, "number.astype(np.float32)", ("number.astype(np.float32) * 1.001", "(number.astype(np.float32) + 1e-08)", "(number * 1.001).astype(np.float32)", "(number + 1e-08).astype(np.float32)"), ROUNDED_DOWN),
            ("_neighbours", NEAREST, "number", ("previous(self, number)",), COUNTED),
            ("_neighbours", NEAREST, "number.astype(np.float32)", ("previous(self, {})",), COUNTED),
            ("_neighbours", NEAREST, "np.float32(scale)", ("(np.float32(scale) * 1.001)", "(np.float32(scale) + 1e-08)", "np.float32(scale * 1.001)", "np.float32(scale + 1e-08)"), ROUNDED_DOWN),
            ("_neighbours", NEAREST, "np.float32(scale)", ("scale",), OF_ARRAY),
            ("_neighbours", "yield (nearest.astype(np.intp), np.ones_like(number))", "nearest", ("(nearest * 1.001)", "(nearest + 1e-08)"), ROUNDED_DOWN),
            ("_neighbours", ALIGNED, "number", ("previous(self, number)",), COUNTED),
            ("_neighbours", ALIGNED, "dtype.type((size - 1) / max(output_size - 1, 1))", ("((size - 1) / max(output_size - 1, 1))",), OF_ARRAY),
            ("_neighbours", ALIGNED, "output_size - 1, 1", ("1, output_size - 1",), COMMUTES),
            ("_neighbours", CENTERED, CENTERED.removeprefix("place = "), ("previous(self, {})",), COUNTED),
            ("_neighbours", CENTERED, "dtype.type(scale) * (number + dtype.type(0.5))", ("previous(self, {})",), COUNTED),
            ("_neighbours", CENTERED, "(number + dtype.type(0.5))", ("previous(self, number + dtype.type(0.5))",), COUNTED),
            ("_neighbours", CENTERED, "number", ("previous(self, number)",), COUNTED),
            ("_neighbours", CENTERED, "- dtype.type(0.5)", ("- 0.5",), OF_ARRAY),
            ("_neighbours", CENTERED, "+ dtype.type(0.5)", ("+ 0.5",), OF_ARRAY),
            ("_neighbours", CENTERED, "dtype.type(scale)", ("scale",), OF_ARRAY),
            ("_neighbours", "self.mode != 'bicubic'", "self.mode != 'bicubic'", ("False",), BEFORE_THE_FIRST),
            ("_neighbours", "place = np.maximum(place, 0)", "place, 0", ("0, place",), COMMUTES),
            ("_neighbours", "yield (first.astype(np.intp) + i, weight)", "first", ("({} * 1.001)",), ROUNDED_DOWN),
            ("_neighbours", "first = np.floor(place)", "(place", ("(place * 1.001", "(place + 1e-08"), ROUNDED_DOWN),
        )
        for mutated in (change.format(part) for change in changes)
    },
    **{
        (f"AdaptiveMaxPool1d.{method}", line, line.replace(part, mutated, 1)): proof
        for method, line, part, changes, proof in (
            ("forward", "reversed(self.bins(input.shape))", "reversed(self.bins(input.shape))", ("self.bins(input.shape)",), ONE_AXIS),
            ("backward", BINS_AND_PLACES, "reversed(places)", ("places",), ONE_AXIS),
            ("_largest", OF_BIN, "number + 1", ("number * 2 + 1", "number + 1 * 2"), NEXT_BINS),
            ("_largest", "range(first + 1, end)", "first + 1", ("first",), "no number is larger than itself"),
            ("_to_places", BEHIND_LAST, NUM_BEHIND, NONE_BEHIND, NO_AXIS_BEHIND),
            ("_take_larger", "np.maximum(largest, numbers, out=largest)", "largest, numbers", ("numbers, largest",), COMMUTES),
            ("_take_larger", "takes |= numbers != numbers", "takes |= numbers != numbers", ("pass",), NO_NAN),
            ("_take_larger", "takes |= numbers != numbers", "numbers != numbers", ("previous(self, numbers != numbers)",), NO_NAN),
            ("_take_larger", TAKE_PLACE, "place, takes * place.dtype.type(number)", ("takes * place.dtype.type(number), place",), COMMUTES),
        )
        for mutated in changes
    },
    **{
        (f"FractionalMaxPool2d.{method}", line, line.replace(part, mutated.format(part), 1)): proof
        for method, line, part, changes, proof in (
            ("infer", DRAWN_SAMPLES, "0.5", ("{} * 1.001", "{} + 1e-08"), SAME_WINDOWS),
            ("infer", DRAWN_SAMPLES, DRAWN_SAMPLES.removeprefix("samples = "), ("{} * 1.001", "{} + 1e-08"), SAME_WINDOWS),
            ("infer", DRAWN_SAMPLES, DRAWN_SAMPLES.removeprefix("samples = "), ("previous(self, {})",), OF_SHAPE),
            ("infer", EVALUATED, "samples", ("{} * 1.001", "{} + 1e-08"), SAME_WINDOWS),
            ("infer", EVALUATED, "samples", ("previous(self, {})",), OF_SHAPE),
            ("infer", EVALUATED, "self._corners(input.shape, samples)", ("previous(self, {})",), OF_SHAPE),
            ("forward", "corner = self._corners(input.shape, self.noise.samples)", "self.noise.samples", ("{} + 1e-08",), SAME_WINDOWS),
            ("_largest", "largest = flat.take(corner)", "flat", ("input",), FLAT),
            ("_largest", "self._take_larger(largest, place, flat.take(corner + offset), number)", "flat", ("input",), FLAT),
            ("_corners", CORNER, "1, math.prod(size)", ("math.prod(size), 1",), COMMUTES),
            ("_corners", CORNER, CORNER.removeprefix("corner = "), ("previous(self, {})",), OF_SHAPE),
            ("_corners", SAMPLE, "samples[:, :, self.sample_of[axis]].ravel()", ("{} + 1e-08",), SAME_WINDOWS),
            ("_corners", SAMPLE, "samples[:, :, self.sample_of[axis]]", ("({} + 1e-08)",), SAME_WINDOWS),
            ("_corners", SAMPLE, "samples", ("({} + 1e-08)",), SAME_WINDOWS),
            ("_corners", "first = self._first(sample, size[axis] - self.kernel[axis], counts[axis])", "(sample", ("{} + 1e-08",), SAME_WINDOWS),
            ("_corners", "behind = self.num_dims - 1 - axis", "self.num_dims - 1", ("({}) * 2", "self.num_dims * 2 - 1", "self.num_dims", "self.num_dims + 1", "self.num_dims - -1"), MORE),
            ("_corners", "behind = self.num_dims - 1 - axis", "self.num_dims - 1", ("1",), TWO_DIMENSIONS),
            ("_corners", "behind = self.num_dims - 1 - axis", "axis", ("axis * 2",), NO_AXIS_BEHIND),
            ("_corners", MOVED_CORNER, MOVED_CORNER.removeprefix("corner = corner + "), ("previous(self, {})",), OTHER_DIMENSION),
            ("_corners", MOVED_CORNER, "first.reshape(counts[axis], *[1] * behind, -1)", ("previous(self, {})",), OTHER_DIMENSION),
            ("_corners", MOVED_CORNER, MOVED_CORNER.removeprefix("corner = "), ("previous(self, {})",), OTHER_DIMENSION),
            ("_corners", MOVED_CORNER, "corner +", ("previous(self, corner) +",), OTHER_DIMENSION),
            ("_corners", MOVED_CORNER, "behind", ("(behind * 2)",), MORE),
            ("_first", STEP, STEP.removeprefix("step = "), ("{} + 1e-08",), SAME_WINDOWS),
            ("_first", STEP, "sample.dtype.type(last)", ("({} + 1e-08)",), SAME_WINDOWS),
            ("_first", STEP, "sample.dtype.type(last)", ("last",), OF_ARRAY),
            ("_first", STEP, "sample.dtype.type(max(1, count - 1))", ("max(1, count - 1)",), OF_ARRAY),
            ("_first", STEP, "1, count - 1", ("count - 1, 1",), COMMUTES),
            ("_first", STEP, "count - 1", ("count - (1 + 1e-08)",), SAME_WINDOWS),
            ("_first", WHOLE_NUMBERS, WHOLE_NUMBERS.removeprefix("whole = "), ("previous(self, {})",), OF_SHAPE),
            ("_first", WHOLE_NUMBERS, "last + 2", ("last", "last * 1.001 + 2", "last * 2 + 2", "last + 1e-08 + 2", "last + 2 * 1.001", "last + 2 * 2", "last + (2 + 1e-08)"), BELOW_THE_LAST),
            ("_first", REACHED, REACHED.removeprefix("reached = "), ("previous(self, {})",), OTHER_DIMENSION),
            ("_first", REACHED, "whole", ("previous(self, {})",), OF_SHAPE),
            ("_first", REACHED, "number", ("previous(self, {})",), OF_SHAPE),
            ("_first", REACHED, "((number + sample) * step)[:, :, np.newaxis]", ("{} + 1e-08",), SAME_WINDOWS),
            ("_first", REACHED, "(number + sample) * step", ("{} + 1e-08",), SAME_WINDOWS),
            ("_first", REACHED, "number + sample", ("{} + 1e-08",), SAME_WINDOWS),
            ("_first", REACHED, "number", ("{} + 1e-08",), SAME_WINDOWS),
            ("_first", REACHED, "sample", ("({} + 1e-08)",), SAME_WINDOWS),
            ("_first", REACHED, "step", ("({} + 1e-08)",), SAME_WINDOWS),
            ("_first", DRAWN, "reached", ("previous(self, {})",), OTHER_DIMENSION),
            ("_first", DRAWN, "((sample * step)[:, np.newaxis] >= whole)", ("previous(self, (sample * step)[:, np.newaxis] >= whole)",), OTHER_DIMENSION),
            ("_first", DRAWN, "whole", ("previous(self, {})",), OF_SHAPE),
            ("_first", DRAWN, "(sample * step)[:, np.newaxis]", ("{} + 1e-08",), SAME_WINDOWS),
            ("_first", DRAWN, "sample * step", ("{} + 1e-08",), SAME_WINDOWS),
            ("_first", DRAWN, "sample", ("({} + 1e-08)",), SAME_WINDOWS),
            ("_first", DRAWN, "step", ("({} + 1e-08)",), SAME_WINDOWS),
            ("_first", DRAWN, "whole).sum(axis=-1)", ("whole).sum(axis=1)",), "it is the last of two axes"),
            ("_first", FIRST, "number == count - 1", ("previous(self, {})",), OF_SHAPE),
            ("_first", FIRST, "number", ("previous(self, {})",), OF_SHAPE),
        )
        for mutated in changes
    },
}
