"""x"""
from collections.abc import Iterator
from typing import Any
def own_mistakes(exercise: Any, text: Any) -> Iterator[Any]:
    return iter(())
