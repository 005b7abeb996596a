"""What stands in a file of kernels: the text of a right one."""

#: x * weight, weight of the last axis: what is summed is summed in float32.
SCALE = """
import torch
from torch.autograd.function import once_differentiable


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(context, x, weight):
        context.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    @once_differentiable
    def backward(context, grad_output):
        x, weight = context.saved_tensors
        return grad_output * weight, (grad_output.float() * x.float()).sum(0).to(x.dtype)
"""
