"""Attention."""

from __future__ import annotations

from student import Student

STUDENTS = {
    "causal_self_attention": Student(
        """
        def backward(self, saved, grad_output):
            from nn_manual.layers.attention_places import rotate

            x, projected, largest, total, joined, mask, _ = saved
            q, k, v = self._split(projected)
            k, v = self._repeated(k), self._repeated(v)
            p = np.exp(self._scores(q, k, None) - largest) / total
            kept = p if mask is None else p * mask
            self._map_backward("out_proj", joined, grad_output)
            (da,) = self._split(grad_output @ vars(self.param)["out_proj.weight"])
            dv = np.swapaxes(kept, -1, -2) @ da
            dp = da @ np.swapaxes(v, -1, -2)
            if mask is not None:
                dp = dp * mask
            ds = p * dp - p * (p * dp).sum(axis=-1, keepdims=True)
            dq = ds @ k / math.sqrt(q.shape[-1])
            dk = np.einsum("bhts,bhtw->bhsw", ds, q)
            grad_projected = np.empty_like(projected)
            of_q, of_k, of_v = self._split(grad_projected)
            of_q[...] = dq
            of_k[...], of_v[...] = (self._by_group(each).sum(axis=2) for each in (dk, dv))
            if self.positions == "rotary":
                rotate(of_q, back=True)
                rotate(of_k, back=True)
            self._map_backward("in_proj", x, grad_projected)
            return (grad_projected.reshape(-1, projected.shape[-1]) @ self.param.in_proj_weight).reshape(x.shape)
        """,
        (" / math.sqrt(q.shape[-1])", "", "without `* (1 / math.sqrt(query.shape[-1]))`"),
        ("p * dp - p * (p * dp).sum(axis=-1, keepdims=True)", "p * dp", "without `- mean`"),
        (
            "p * dp - p * (p * dp).sum(axis=-1, keepdims=True)",
            "p * (1 - p) * dp",
            "without the `sum` of `(probability * grad_probability).sum(axis=-1, keepdims=True)`",
        ),
        (
            "np.swapaxes(kept, -1, -2) @ da",
            "kept @ da",
            "with `kept @ grad_attended[part]` in the place of `kept.mT @ grad_attended[part]`",
        ),
        (
            "dp = dp * mask",
            "pass",
            "with `grad_kept` in the place of `grad_kept if mask is None else np.multiply(grad_kept, mask[part], "
            "out=grad_kept)`",
        ),
        (
            "np.swapaxes(kept, -1, -2) @ da",
            "np.swapaxes(p, -1, -2) @ da",
            "with `probability` in the place of `probability if mask is None else probability * mask[part]`",
        ),
        (
            'dk = np.einsum("bhts,bhtw->bhsw", ds, q)',
            "dk = ds @ q",
            "with `grad_scores @ query[part]` in the place of `grad_scores.mT @ query[part]`",
        ),
        (
            "p * dp - p * (p * dp).sum(axis=-1, keepdims=True)",
            "p * dp - p * (p * dp).sum(axis=-2, keepdims=True)",
            "with the `sum` over axis -2 in the place of `(probability * grad_probability).sum(axis=-1, "
            "keepdims=True)`",
        ),
        (
            "p * dp - p * (p * dp).sum(axis=-1, keepdims=True)",
            "p * dp - p * dp.sum(axis=-1, keepdims=True)",
            "without the factor `probability`",
        ),
    ),
    "padded_causal_self_attention": Student(
        """
        def backward(self, saved, grad_output):
            grad = np.where(saved.counts, grad_output, 0)
            return SelfAttention.backward(self, saved, grad)
        """,
        ("np.where(saved.counts, grad_output, 0)", "grad_output", "A padded output is 0 whatever the input is"),
        ("np.where(saved.counts, grad_output, 0)", "np.where(saved.counts, 0, grad_output)", "The mask is true where"),
        (
            "np.where(saved.counts, grad_output, 0)\n    return SelfAttention.backward(self, saved, grad)",
            "grad_output\n    return SelfAttention.backward(self, saved, grad) * saved.counts",
            "The mask comes before the way back",
        ),
    ),
}
