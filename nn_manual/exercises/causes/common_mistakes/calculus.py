"""Common mistakes in the calculus of arrays, linear maps and activations."""

from __future__ import annotations

UPSTREAM = "The gradient that comes from above is missing: by the chain rule, each slope is multiplied by it."
COPIES = "An operand that was broadcast is used several times: its gradient is the sum over them."
INVERSE = "The way back is the inverse permutation, which is argsort(order)."
STACKS = "It holds for two matrices. Of a stack, .T reverses all axes, .mT the last two. A vector is a row or column."
OF_AXIS = "Each part of the array along the axis has its own extreme number."
TIED = "Tied numbers share one gradient: the parts add up to 1."

MISTAKES: dict[str, dict[str, str]] = {
    "square": {
        "without `* 2`": "The derivative of x**2 is 2 x.",
        "without the factor `grad_answer`": UPSTREAM,
        "without `* input`": "The derivative of x**2 is 2 x, not 2.",
    },
    "tanh": {
        "without the factor `grad_answer`": UPSTREAM,
        "with `input` in the place of `answer`": "1 - tanh(x)**2 has the answer in it, not the input.",
        "without the factor `answer`": "The answer must be squared: tanh' = 1 - tanh**2.",
    },
    "log": {
        "with `* input` in the place of `/ input`": "The derivative of log(x) is 1 / x.",
        "with `answer` in the place of `input`": "1 / x has the input in it, not the logarithm.",
    },
    "power": {
        "without the factor `exponent`": "The exponent comes down as a factor: (x**n)' = n x**(n - 1).",
        "without `- 1`": "The exponent becomes one less: (x**n)' = n x**(n - 1).",
        "without `* log(base)`": "The derivative of b**x in x is b**x log(b).",
    },
    "multiply": {
        "with `a` in the place of `b`": "The slope for one factor is the other one.",
        "without the `unbroadcast` of `unbroadcast(grad_answer * a, b.shape)`": COPIES,
        "without the `unbroadcast` of `unbroadcast(grad_answer * b, a.shape)`": COPIES,
    },
    "divide": {
        "with its sign turned, in grad_b": "1 / b falls where b grows: its derivative is -1 / b**2.",
        "without `/ b`, in grad_b": "The derivative of a / b in b has b twice below: -a / b**2.",
    },
    "sum": {
        "divided by `input.size`": "That is the gradient of the mean. Each number is added once: its slope is 1.",
        "times `input`": "The sum is linear: its slope is 1, whatever the input is.",
        "divided by `input.size // answer.size`": "That is the gradient of the mean. Each number is added once: its "
        "slope is 1.",
    },
    "mean": {
        "without `/ (input.size // answer.size)`": "That is the gradient of the sum: in the mean, each slope is 1 / n.",
        "with `input.size` in the place of `input.size // answer.size`":
            "Only the numbers that go into one mean count, "
            "not all numbers of the input.",
    },
    "outer": {
        "with the mean in the place of the sum in `grad_answer @ b`": "The parts of the gradient are added, as each "
        "number of a is used once for each number of b.",
    },
    "matmul": {
        "with its sign turned": "A product is linear in both factors: no sign turns.",
        "unbroadcast(grad_matrix @ matrix_b.mT, matrix_a.shape).reshape(a.shape) => grad_answer @ b.T": STACKS,
        "unbroadcast(matrix_a.mT @ grad_matrix, matrix_b.shape).reshape(b.shape) => a.T @ grad_answer": STACKS,
        "unbroadcast(grad_matrix @ matrix_b.mT, matrix_a.shape) => unbroadcast(matrix_b @ grad_matrix.mT, "
        "matrix_a.mT.shape)": "That is the right product transposed, in another order.",
        "unbroadcast(matrix_a.mT @ grad_matrix, matrix_b.shape) => unbroadcast(grad_matrix.mT @ matrix_a, "
        "matrix_b.mT.shape)": "That is the right product transposed, in another order.",
    },
    "trace": {
        "with `grad_answer` everywhere, in the place of `where(eye(*input.shape), grad_answer, 0)`":
            "Only the diagonal "
            "goes into the trace: all other numbers have the gradient 0.",
        "with 1 in the place of `grad_answer`": UPSTREAM,
    },
    "max": {
        "with `argmin` in the place of `argmax`": "Only the largest number moves the answer.",
        "with `None` in the place of `axis`": OF_AXIS,
        "with `input` in the place of `share`": "The slope is 1 at the largest number, whatever it is.",
        "chosen(input, argmax, axis) => input == max(input, axis=axis, keepdims=True)": TIED,
        "without the factor `spread(grad_answer, input.shape, axis)`": UPSTREAM,
    },
    "min": {
        "with `argmax` in the place of `argmin`": "Only the smallest number moves the answer.",
        "with `None` in the place of `axis`": OF_AXIS,
        "with its sign turned, in grad_input": "The answer grows where the smallest number does: no sign turns.",
        "times `input`": "The slope is 1 at the smallest number, whatever it is.",
        "chosen(input, argmin, axis) => input == min(input, axis=axis, keepdims=True)": TIED,
        "without the factor `spread(grad_answer, input.shape, axis)`": UPSTREAM,
    },
    "transpose": {
        "without the `argsort` of `argsort(order)`": INVERSE,
        "without the order `argsort(order)`, so that all axes are reversed": INVERSE,
    },
    "concatenate": {
        "with `k * sizes[k]` in the place of `sum(sizes[:k])`": "An operand starts where those before it end, and each "
        "has its own size.",
        "with `k * sizes[0]` in the place of `sum(sizes[:k])`": "An operand starts where those before it end, and each "
        "has its own size.",
        "with `0` in the place of `along`": "The operands lie one after the other along `axis`.",
    },
    "diagonal": {
        "diagonal(arange(input.size).reshape(input.shape), offset, axis1, axis2) => diagonal(arange(input.size)"
        ".reshape(input.shape), 0, axis1, axis2)[..., :grad_answer.shape[-1]]": "The diagonal begins `offset` columns "
        "further right.",
    },
    "index": {
        "with `=` for `+=`, which keeps only one number of each position, in `bincount(positions.reshape(-1), "
        "grad_answer.reshape(-1), input.size)`": "An entry that is taken several times gets the sum: `grad[key] += `, "
        "too, adds once. np.add.at adds each.",
    },
    "linear": {
        "with the mean in the place of the sum in `rows(grad_output).T @ rows(input)`": "A weight is used once in each "
        "row: its gradients are added. If there is a mean over the batch, the loss has it already.",
        "with `mean` in the place of `sum`":
            "The bias is used once in each row: its gradients are added. If there is a "
            "mean over the batch, the loss has it already.",
    },
    "relu_layer": {
        "with `grad_output` everywhere, in the place of `where(output > 0, grad_output, 0)`":
            "Where the output is 0, the "
            "gradient doesn't pass. (The output is never below 0: `>= 0` always holds.)",
        "with `grad_output` in the place of `output`": "The mask is that of forward, whatever the gradient's sign is.",
    },
    "tanh_layer": {
        "without the power in `output ** 2`": "The output must be squared: tanh' = 1 - tanh**2.",
        "with `tanh(output)` in the place of `output`": "What is saved is the output: tanh was applied already.",
        "with `output * (1 - output)` in the place of `1 - output ** 2`": "That is the derivative of the sigmoid.",
    },
    "sigmoid": {
        "without `* (1 - output)`": "s' = s (1 - s).",
        "without `* output`": "s' = s (1 - s).",
        "with `expit(output)` in the place of `output`":
            "What is saved is the output: the sigmoid was applied already.",
        "output * (1 - output) => 1 - output * output": "That is the derivative of tanh: the sigmoid's is s (1 - s).",
    },
    "silu": {
        "without `+ output * expit(-input)`": "By the product rule, (x s)' = s + x s': the second term is missing.",
        "without `sigmoid`": "By the product rule, (x s)' = s + x s': the first term is missing.",
        "sigmoid + output * expit(-input) => sigmoid * expit(-input)": "That is s', the derivative of the sigmoid: the "
        "factor x of x s is forgotten, and with it the product rule.",
        "with `input` in the place of `output`": "The second term of (x s)' = s + x s' is x s (1 - s), and x s is the "
        "output.",
        "without `* expit(-input)`": "s' = s (1 - s), and 1 - s is expit(-x).",
        "with `- output * expit(-input)` in the place of `+ output * expit(-input)`":
            "Both terms of the product rule are added.",
    },
    "prelu": {
        "with 0 in the place of `slope * grad_output`": "Below 0 the function has the slope, not 0.",
    },
    "elu": {
        "alpha * exp(minimum(input, 0)) => input + alpha":
            "output + alpha is the slope where the output is known: what is saved is the input.",
    },
    "glu": {
        "grad_output * output * (1 - gate) => grad_output * output / gate":
            "output / gate is the value: the derivative of the gate, gate (1 - gate), is missing.",
        "without `* (1 - gate)`":
            "The derivative of the gate is gate (1 - gate), and output = value * gate has one gate.",
    },
}
