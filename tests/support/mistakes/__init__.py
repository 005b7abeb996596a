"""Right solutions of the exercises as a student writes them, and mistakes in them: what stands there, what the student
wrote, and a part of the sentence that says why it is wrong. Each chapter of the exercises has a file, or several.
"""

from __future__ import annotations

from collections.abc import Mapping

from student import Student

from mistakes import (
    activations,
    adaptive_updates,
    attention,
    calculus_of_numbers,
    calculus_of_shapes,
    calculus_of_sums,
    convolution,
    cross_entropy,
    cyclic_schedules,
    layers_of_layers,
    linear_maps,
    normalizations,
    other_losses,
    pooling,
    schedules,
    sequences,
    updates,
    whole_net,
)

#: By the title of the chapter, what its files have.
CHAPTERS: Mapping[str, tuple[Mapping[str, Student], ...]] = {
    "Calculus of arrays": (calculus_of_numbers.STUDENTS, calculus_of_sums.STUDENTS, calculus_of_shapes.STUDENTS),
    "Linear maps and the squared error": (linear_maps.STUDENTS,),
    "Softmax and cross entropy": (cross_entropy.STUDENTS, other_losses.STUDENTS),
    "Activations": (activations.STUDENTS,),
    "Normalizations": (normalizations.STUDENTS,),
    "Convolution, pooling and images": (pooling.STUDENTS, convolution.STUDENTS),
    "Sequences and recurrent nets": (sequences.STUDENTS,),
    "Attention": (attention.STUDENTS,),
    "Layers of layers, noise, and others": (layers_of_layers.STUDENTS,),
    "Optimizers' updates": (adaptive_updates.STUDENTS, updates.STUDENTS),
    "Schedules": (schedules.STUDENTS, cyclic_schedules.STUDENTS),
    "A whole net": (whole_net.STUDENTS,),
}
STUDENTS = {name: student for parts in CHAPTERS.values() for part in parts for name, student in part.items()}
