"""Writes the two files beside this one, with transformers 5.24.0 and torch 2.13.0: `python make.py`.

model.safetensors is a GPT2LMHeadModel with random parameters, as `save_pretrained` writes it. outputs.safetensors has
what it computes from them in float64: the logits of a batch, and those after a step of SGD with lr 0.5.
"""

import shutil
import tempfile
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel

FOLDER = Path(__file__).parent

torch.manual_seed(0)
sizes = {"vocab_size": 13, "n_positions": 8, "n_embd": 12, "n_layer": 2, "n_head": 3}
no_dropout = {"resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}
model = GPT2LMHeadModel(GPT2Config(**sizes, **no_dropout, bos_token_id=0, eos_token_id=0))
with torch.no_grad():
    for parameter in model.parameters():
        parameter.normal_(0, 0.3)  # biases, too: transformers starts them at 0, where an exchange wouldn't show
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    shutil.copy(Path(folder, "model.safetensors"), FOLDER)

model = model.double()
tokens, target = torch.randint(13, (2, 4, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
logits = model(tokens).logits
loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
loss.backward()  # type: ignore[no-untyped-call] # torch has none
optimizer.step()
outputs = {"tokens": tokens, "target": target, "logits": logits.detach(), "logits_after": model(tokens).logits.detach()}
save_file({name: tensor.contiguous() for name, tensor in outputs.items()}, FOLDER / "outputs.safetensors")
