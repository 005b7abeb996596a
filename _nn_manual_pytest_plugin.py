"""The pytest plugin: a parametrised case for every layer of a module, and fixtures that check any layer or function.

    @pytest.mark.gradient_layers("my_layers")
    def test_gradients(layer_case, gradient_check):
        gradient_check(*layer_case)

Where the package is installed, pytest loads this module in every run. So it stands outside the package, whose import
sets environment variables, and imports the package only for a marked test or for a fixture.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from nn_manual.arrays import Shape
    from nn_manual.layers import Layer

MARKER = "gradient_layers"
FIXTURE = "layer_case"


class LayerCase(NamedTuple):
    """One parametrised case: the arguments of the fixture `gradient_check`."""

    layer: Layer
    input_shape: Shape
    dtype: str
    upstream: str


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known: --strict-markers refuses unknown ones."""
    config.addinivalue_line(
        "markers", f"{MARKER}(module): run with a {FIXTURE} for each layer of a module, dtype and upstream gradient"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise `layer_case` by the marker's module. A mistake in the marker is an error of collection."""
    marker = metafunc.definition.get_closest_marker(MARKER)
    if marker is None:
        return
    if FIXTURE not in metafunc.fixturenames:
        pytest.fail(f"a test marked {MARKER} takes the fixture {FIXTURE}", pytrace=False)
    if len(marker.args) != 1 or marker.kwargs:
        pytest.fail(f'{MARKER} takes the name of one module: @pytest.mark.{MARKER}("my_layers")', pytrace=False)
    cases = _cases(*marker.args)
    metafunc.parametrize(FIXTURE, list(cases.values()), ids=list(cases))


@pytest.fixture
def gradient_check() -> Callable[..., None]:
    """`gradient_check(layer, input_shape, dtype, upstream)` compares a layer with its reference on every kind of input.

    layer: from this package or your own, also a Sequential; a copy of it is checked, with parameters drawn anew.
    input_shape: with the batch first. dtype: "float32" or "float64". upstream: the kind of upstream gradient, one of
    nn_manual.check.catalogue.input_kinds.KINDS ("random", "negative", "tied", "zero", "tiny", "scattered"). If the
    layer differs from its reference, the test fails with the report as its message.
    """
    from nn_manual.check.catalogue.cases import layer_cases
    from nn_manual.check.catalogue.catalogue import entry
    from nn_manual.check.catalogue.labels import label
    from nn_manual.errors import LayerError, out_of_memory
    from nn_manual.messages.text import one_line

    def gradient_check(layer: Layer, input_shape: Shape, dtype: str = "float64", upstream: str = "random") -> None:
        try:
            found = entry(label(layer), dtype, layer_cases(layer, input_shape, dtype, seed=0, upstreams=[upstream]))
        except LayerError as error:
            pytest.fail(str(error), pytrace=False)
        except (MemoryError, RuntimeError) as error:
            if (shortage := out_of_memory(error)) is None:
                raise
            raise pytest.fail.Exception(shortage, pytrace=False) from None
        # An upstream gradient of zero can't show a wrong factor. It is there because it may cause a NaN.
        if found.failure is not None and not (upstream == "zero" and found.failure.agrees):
            case = one_line(f"{found.component}, {dtype}, {found.last_case}")
            pytest.fail(f"{case}:\n{found.failure}", pytrace=False)

    return gradient_check


@pytest.fixture
def function_check() -> Callable[..., None]:
    """`function_check(function, reference, inputs, ...)` takes the arguments of nn_manual.check_function. If a value or
    a row is wrong, the test fails with the report as its message; if the arguments don't fit, with one line.
    """
    from nn_manual import check_function
    from nn_manual.errors import out_of_memory
    from nn_manual.functions.exceptions import told

    def function_check(*arguments: Any, **options: Any) -> None:
        try:
            report = check_function(*arguments, **options)
        except Exception as error:  # a reference may raise anything
            raise pytest.fail.Exception(out_of_memory(error) or told(error), pytrace=False) from None
        if not report.passed:
            pytest.fail(str(report), pytrace=False)

    return function_check


def _cases(module_name: str) -> dict[str, LayerCase]:
    """The cases of every layer in a module, by their ids."""
    from nn_manual.arrays import DTYPES
    from nn_manual.check.catalogue.input_kinds import KINDS
    from nn_manual.check.catalogue.labels import label
    from nn_manual.layers import Layer
    from nn_manual.registry import defined_in, examples

    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name:
            raise
        pytest.fail(f"{MARKER}: there is no module {module_name!r}", pytrace=False)
    classes = defined_in(module, Layer)
    if not classes:
        pytest.fail(f"{MARKER}: the module {module_name!r} defines no dataclass that is a Layer", pytrace=False)
    how = "define its classmethod examples(), which returns (layer, input_shape) pairs"
    layers = []
    for name, layer_class in classes.items():
        try:
            found = examples({name: layer_class})
        except TypeError as error:  # the default of examples() makes a layer without arguments
            pytest.fail(f"{MARKER}: {error}: {how}", pytrace=False)
        if not found or not all(map(_is_pair, found)):
            pytest.fail(f"{MARKER}: {name}.examples() returned {found!r}: {how}", pytrace=False)
        layers += found
    return {
        f"{label(layer)}-{'x'.join(map(str, shape))}-{dtype}-{upstream}": LayerCase(layer, shape, dtype, upstream)
        for (layer, shape), dtype, upstream in itertools.product(layers, DTYPES, KINDS)
    }


def _is_pair(example: Any) -> bool:
    """Whether it is a layer with a shape."""
    from nn_manual.layers import Layer

    match example:
        case (Layer(), tuple() as shape):
            return all(isinstance(size, int) for size in shape)
    return False
