#!/usr/bin/env python3
"""Writes networks.json: what PyTorch's own modules (nn.GRU, nn.MultiheadAttention, nn.LayerNorm,
nn.TransformerEncoderLayer) give for the networks in models/, scores, losses and gradients, float64.

Parameter number s (from 1, in the order of Model::parameters(), ours and row-major (in, out)) is
v(s, k) = ((7 k^2 + 13 k + 29 s^2 + 3 s k + 5) mod 101) / 101 - 0.5, gains 1 more, k the index of a
number; inputs are 2 v(1000, k).  Run: networks.py > networks.json.  Made with PyTorch 1.13."""
import json
import numpy as np
import torch
from torch import nn

torch.set_default_dtype(torch.float64)


def v(s, *shape):
    k = np.arange(int(np.prod(shape)))
    return torch.tensor((((7 * k * k + 13 * k + 29 * s * s + 3 * s * k + 5) % 101) / 101 - 0.5)
                        .reshape(shape))


class Parameters:
    """Our parameters in order; torch's modules take theirs from them, so gradients arrive here."""

    def __init__(self):
        self.all = []

    def add(self, name, *shape):
        value = v(len(self.all) + 1, *shape) + (1 if name.endswith("gain") else 0)
        self.all.append((name, value.requires_grad_()))
        return value

    def linear(self, name, n_in, n_out):
        return self.add(name + ".weight", n_in, n_out), self.add(name + ".bias", n_out)

    def gradients(self):
        return {name: np.atleast_2d(value.grad.numpy()).tolist() for name, value in self.all}


def call(module, tensors, *args, **kwargs):
    """The module applied with these tensors as its parameters."""
    from torch.nn.utils.stateless import functional_call
    return functional_call(module, tensors, args, kwargs)


def affine(x, w, b):
    return x @ w + b


def block_tensors(p, name, dim, fused):
    if fused:
        w, b = p.linear(name + ".qkv", dim, 3 * dim)
    else:
        parts = [p.linear(name + "." + part, dim, dim) for part in "qkv"]
        w = torch.cat([part[0] for part in parts], 1)
        b = torch.cat([part[1] for part in parts])
    out = p.linear(name + ".out", dim, dim)
    ff1 = p.linear(name + ".ff1", dim, 4 * dim)
    ff2 = p.linear(name + ".ff2", 4 * dim, dim)
    norms = [p.add(f"{name}.{n}", dim) for n in
             ("norm1.gain", "norm1.offset", "norm2.gain", "norm2.offset")]
    return {"self_attn.in_proj_weight": w.T, "self_attn.in_proj_bias": b,
            "self_attn.out_proj.weight": out[0].T, "self_attn.out_proj.bias": out[1],
            "linear1.weight": ff1[0].T, "linear1.bias": ff1[1],
            "linear2.weight": ff2[0].T, "linear2.bias": ff2[1],
            "norm1.weight": norms[0], "norm1.bias": norms[1],
            "norm2.weight": norms[2], "norm2.bias": norms[3]}


def encoder(p, x, dim, heads, depth, norm_first, activation, fused, padding=None):
    layer = nn.TransformerEncoderLayer(dim, heads, 4 * dim, 0.0, activation, batch_first=True,
                                       norm_first=norm_first)
    for i in range(depth):
        tensors = block_tensors(p, f"block{i + 1}", dim, fused)
        x = call(layer, tensors, x, src_key_padding_mask=padding)
    if norm_first:
        gain, offset = p.add("norm.gain", dim), p.add("norm.offset", dim)
        x = nn.functional.layer_norm(x, (dim,), gain, offset)
    return x


def finish(name, shape, p, inputs, scores, labels):
    loss = nn.functional.cross_entropy(scores, torch.tensor(labels), reduction="sum")
    loss.backward()
    return {"model": name, "shape": shape, "inputs": inputs.tolist(), "labels": labels,
            "scores": scores.tolist(), "loss": loss.item(), "gradients": p.gradients()}


def gru():
    batch, steps, channels, hidden, classes = 3, 5, 2, 4, 3
    p = Parameters()
    wx, bx = p.linear("x2h", channels, 3 * hidden)
    wh, bh = p.linear("h2h", hidden, 3 * hidden)
    inputs = 2 * v(1000, batch, steps * channels)
    states, _ = torch._VF.gru(  # what nn.GRU calls
        inputs.reshape(batch, steps, channels), torch.zeros(1, batch, hidden),
        [wx.T, wh.T, bx, bh], True, 1, 0.0, True, False, True)
    a = torch.tanh(affine(states.reshape(batch, steps * hidden),
                          *p.linear("fc1", steps * hidden, 6)))
    a = torch.tanh(affine(a, *p.linear("fc2", 6, 5)))
    scores = affine(a, *p.linear("fc3", 5, classes))
    shape = {"features": steps * channels, "classes": classes, "steps": steps,
             "channels": channels}
    return finish(f"gru:hidden={hidden},head=6-5", shape, p, inputs, scores, [0, 2, 1])


def transformer():
    batch, steps, vocabulary, dim, heads, depth, classes = 3, 5, 7, 6, 2, 2, 2
    ids = torch.tensor([[3, 1, 6, 2, 5], [4, 4, 0, 0, 0], [1, 0, 2, 0, 0]])
    lengths = torch.tensor([5, 2, 3])
    padding = torch.arange(steps)[None, :] >= lengths[:, None]
    p = Parameters()
    tokens, positions = p.add("tokens", vocabulary, dim), p.add("positions", steps, dim)
    x = encoder(p, tokens[ids] + positions, dim, heads, depth, False, "relu", False, padding)
    pooled = x.masked_fill(padding[:, :, None], -np.inf).max(1)[0]
    scores = affine(pooled, *p.linear("head", dim, classes))
    shape = {"features": steps, "classes": classes, "steps": steps, "vocabulary": vocabulary}
    return finish(f"transformer:dim={dim},heads={heads},depth={depth}", shape, p, ids, scores,
                  [0, 1, 1])


def vit():
    batch, channels, height, width, patch = 2, 2, 4, 6, 2
    dim, heads, depth, classes = 4, 2, 2, 3
    features = channels * height * width
    inputs = 2 * v(1000, batch, features)
    across, down = width // patch, height // patch
    p = Parameters()
    token, positions = p.add("class_token", 1, dim), p.add("positions", across * down + 1, dim)
    w, b = p.linear("patches", channels * patch * patch, dim)
    x = nn.functional.conv2d(inputs.reshape(batch, channels, height, width),
                             w.T.reshape(dim, channels, patch, patch), b, stride=patch)
    x = x.flatten(2).transpose(1, 2)
    x = torch.cat([token.expand(batch, 1, dim), x], 1) + positions
    x = encoder(p, x, dim, heads, depth, True, "gelu", True)
    scores = affine(x[:, 0], *p.linear("head", dim, classes))
    shape = {"features": features, "classes": classes, "channels": channels, "height": height,
             "width": width}
    return finish(f"vit:dim={dim},heads={heads},depth={depth},patch={patch},qkv=fused", shape, p,
                  inputs, scores, [2, 0])


def attention():
    """Heads only: the projections are the identity.  Two examples, the second of three rows."""
    examples, steps, dim, heads = 2, 4, 6, 3
    q, k, w = (2 * v(s, examples, steps, dim).requires_grad_() for s in (1, 2, 3))
    for t in (q, k, w):
        t.retain_grad()
    counts = torch.tensor([4, 3])
    padding = torch.arange(steps)[None, :] >= counts[:, None]
    out, _ = call(nn.MultiheadAttention(dim, heads, batch_first=True),
                  {"in_proj_weight": torch.eye(dim).repeat(3, 1), "in_proj_bias": torch.zeros(3 * dim),
                   "out_proj.weight": torch.eye(dim), "out_proj.bias": torch.zeros(dim)},
                  q, k, w, key_padding_mask=padding)
    out = out * ~padding[:, :, None]
    (out * v(4, examples, steps, dim)).sum().backward()

    def flat(t):
        return t.reshape(examples * steps, dim).tolist()
    return {"lengths": counts.tolist(), "steps": steps, "heads": heads, "out": flat(out),
            "deltas": [flat(t.grad) for t in (q, k, w)]}


def layer_norm():
    rows, width = 4, 5
    x = v(1, rows, width).requires_grad_()
    norm = nn.LayerNorm(width)
    gain, offset = 1 + v(2, width), v(3, width)
    gain.requires_grad_(), offset.requires_grad_()
    y = call(norm, {"weight": gain, "bias": offset}, x)
    (y * v(4, rows, width)).sum().backward()
    return {"y": y.tolist(), "dx": x.grad.tolist(), "gain": [gain.grad.tolist()],
            "offset": [offset.grad.tolist()]}


if __name__ == "__main__":
    print(json.dumps({"torch": torch.__version__, "networks": [gru(), transformer(), vit()],
                      "attention": attention(), "layer_norm": layer_norm()}))
