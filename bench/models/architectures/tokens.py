"""Attention in the spellings that people write it in, and networks of tokens without attention."""

import math

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, TOKENS = 128, 4, 64


class Attention(nn.Module):
    """Self-attention whose one product is written out as `spelling` says."""

    def __init__(self, spelling, causal=False, key_heads=HEADS):
        super().__init__()
        self.spelling, self.causal, self.key_heads, self.head = spelling, causal, key_heads, WIDTH // HEADS
        self.q, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.k, self.v = (nn.Linear(WIDTH, key_heads * self.head) for _ in range(2))
        self.register_buffer("mask", torch.tril(torch.ones(TOKENS, TOKENS, dtype=torch.bool)))

    def heads(self, x, count):
        return x.view(x.shape[0], x.shape[1], count, self.head).transpose(1, 2)

    def scores(self, q, k):
        scale = 1 / math.sqrt(self.head)
        if self.spelling == "scaled q":
            return (q * scale) @ k.transpose(-2, -1)
        if self.spelling == "scaled both":
            return (q * scale ** 0.5) @ (k * scale ** 0.5).transpose(-2, -1)
        if self.spelling == "scaled k":
            return q @ (k.transpose(-2, -1) * scale)
        if self.spelling == "einsum":
            return torch.einsum("bhid,bhjd->bhij", q, k) * scale
        return q @ k.transpose(-2, -1) / math.sqrt(self.head)

    def weights(self, scores):
        if not self.causal:
            return scores.softmax(-1)
        mask = self.mask[:scores.shape[-2], :scores.shape[-1]]
        if self.spelling == "added mask":
            return (scores + torch.zeros_like(mask, dtype=scores.dtype).masked_fill(~mask, -1e9)).softmax(-1)
        if self.spelling == "where":
            return torch.where(mask, scores, torch.tensor(torch.finfo(scores.dtype).min)).softmax(-1)
        return scores.masked_fill(~mask, float("-inf")).softmax(-1)

    def forward(self, x):
        q, k, v = self.heads(self.q(x), HEADS), self.heads(self.k(x), self.key_heads), self.heads(self.v(x), self.key_heads)
        if self.key_heads != HEADS:
            n, h, t, d = k.shape
            k, v = (a[:, :, None].expand(n, h, HEADS // h, t, d).reshape(n, HEADS, t, d) for a in (k, v))
        if self.spelling == "library":
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        elif self.spelling == "einsum":
            y = torch.einsum("bhij,bhjd->bhid", self.weights(self.scores(q, k)), v)
        else:
            y = self.weights(self.scores(q, k)) @ v
        return self.out(y.transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.attention, self.norms = attention, nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(2)])
        self.dense = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.dense(self.norms[1](x))


def attention(spelling, **options):
    return lambda: (nn.Sequential(*[Block(Attention(spelling, **options)) for _ in range(2)]), (torch.randn(1, TOKENS, WIDTH),))


class Packed(nn.Module):
    """torch.nn.MultiheadAttention, which cuts one product in three."""

    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

    def forward(self, x):
        return self.inner(x, x, x, need_weights=False)[0]


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.tokens = nn.Sequential(nn.Linear(TOKENS, 2 * TOKENS), nn.GELU(), nn.Linear(2 * TOKENS, TOKENS))
        self.channels = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(approximate="tanh"), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.tokens(self.first(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.second(x))


class GatedMlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.gate_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(2 * WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.places = nn.Conv1d(TOKENS, TOKENS, 1)

    def forward(self, x):
        u, v = F.gelu(self.up(self.norm(x))).chunk(2, -1)
        return x + self.down(u * self.places(self.gate_norm(v)))


class Pooling(nn.Module):
    """Tokens mixed by a mean over their neighbors (Yu et al., arXiv 2111.11418)."""

    def __init__(self, width=64):
        super().__init__()
        self.first, self.second = nn.GroupNorm(1, width), nn.GroupNorm(1, width)
        self.dense = nn.Sequential(nn.Conv2d(width, 4 * width, 1), nn.GELU(), nn.Conv2d(4 * width, width, 1))
        self.scale = nn.Parameter(torch.full((width, 1, 1), 0.1))

    def forward(self, x):
        y = self.first(x)
        x = x + self.scale * (F.avg_pool2d(y, 3, 1, 1, count_include_pad=False) - y)
        return x + self.scale * self.dense(self.second(x))


def poolformer():
    return nn.Sequential(nn.Conv2d(3, 64, 7, 4, 2), Pooling(), Pooling(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(64, 100)), (torch.rand(1, 3, 64, 64),)


class RootMeanSquare(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class WrittenOut(nn.Module):
    """Normalizations and activations as formulas: layer norm by moments, gelu by erf and by tanh, silu, softplus, mish."""

    def __init__(self):
        super().__init__()
        self.dense = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(6)])
        self.root, self.gain, self.shift = RootMeanSquare(WIDTH), nn.Parameter(torch.rand(WIDTH)), nn.Parameter(torch.rand(WIDTH))

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        x = centred / torch.sqrt((centred ** 2).mean(-1, keepdim=True) + 1e-5) * self.gain + self.shift
        a, b, c, d, e, f = (layer(x) for layer in self.dense)
        a = a * 0.5 * (1 + torch.erf(a / math.sqrt(2)))
        b = 0.5 * b * (1 + torch.tanh(math.sqrt(2 / math.pi) * (b + 0.044715 * torch.pow(b, 3))))
        c = c * torch.sigmoid(c)
        d = d * torch.tanh(F.softplus(d))
        e = e * torch.sigmoid(1.702 * e)
        return self.root(a + b + c + d + e + F.hardswish(f))


def tokens(module, batch=1):
    return lambda: (module(), (torch.randn(batch, TOKENS, WIDTH),))


TABLE = {
    "attention_scores_scaled": attention("scores"),
    "attention_q_scaled": attention("scaled q"),
    "attention_k_scaled": attention("scaled k"),
    "attention_both_scaled": attention("scaled both"),
    "attention_einsum": attention("einsum"),
    "attention_library": attention("library"),
    "attention_causal_library": attention("library", causal=True),
    "attention_causal_infinity": attention("scores", causal=True),
    "attention_causal_where": attention("where", causal=True),
    "attention_causal_added": attention("added mask", causal=True),
    "attention_grouped": attention("scores", causal=True, key_heads=2),
    "attention_packed": tokens(Packed),
    "mlp_mixer": tokens(lambda: nn.Sequential(Mixer(), Mixer())),
    "gmlp": tokens(lambda: nn.Sequential(GatedMlp(), GatedMlp())),
    "poolformer": poolformer,
    "formulas": tokens(WrittenOut),
    "encoder_layer": tokens(lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, HEADS, 512, batch_first=True, norm_first=True),
                                                          2, enable_nested_tensor=False)),
}
