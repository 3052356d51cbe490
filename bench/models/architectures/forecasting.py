"""Forecasters of series: recurrent cells, causal convolutions, stacks of dense layers, attention."""

import torch
from torch import nn
from torch.nn import functional as F

STEPS, FEATURES, WIDTH = 48, 8, 64


def series(*extents):
    return (torch.randn(*(extents or (4, STEPS, FEATURES))),)


class Recurrent(nn.Module):
    """The next steps from the last state of a recurrent cell."""

    def __init__(self, cell, **options):
        super().__init__()
        self.cell = cell(FEATURES, WIDTH, batch_first=True, **options)
        self.out = nn.Linear(WIDTH * (2 if options.get("bidirectional") else 1), 4)

    def forward(self, x):
        return self.out(self.cell(x)[0][:, -1])


class Unrolled(nn.Module):
    """A cell that is called step by step in Python, which exporters write out."""

    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.GRUCell(FEATURES, WIDTH), nn.Linear(WIDTH, 4)

    def forward(self, x):
        state = x.new_zeros(x.shape[0], WIDTH)
        for step in range(12):
            state = self.cell(x[:, step], state)
        return self.out(state)


class Causal(nn.Module):
    """Dilated convolutions that see the past alone (Bai et al., arXiv 1803.01271)."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv1d(FEATURES if i == 0 else WIDTH, WIDTH, 3, dilation=2 ** i) for i in range(4)])
        self.out = nn.Linear(WIDTH, 4)

    def forward(self, x):
        x = x.transpose(1, 2)
        for i, layer in enumerate(self.layers):
            y = F.relu(layer(F.pad(x, (2 * 2 ** i, 0))))
            x = y if i == 0 else x + y
        return self.out(x[:, :, -1])


class Wave(nn.Module):
    """Gated dilated convolutions with skips (van den Oord et al., arXiv 1609.03499)."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(FEATURES, 32, 1)
        self.both = nn.ModuleList([nn.Conv1d(32, 64, 2, dilation=2 ** i, padding=2 ** i) for i in range(4)])
        self.skip = nn.ModuleList([nn.Conv1d(32, 32, 1) for _ in range(4)])
        self.out = nn.Conv1d(32, 1, 1)

    def forward(self, x):
        x, total = self.first(x.transpose(1, 2)), 0
        for both, skip in zip(self.both, self.skip):
            a, b = both(x)[:, :, :x.shape[2]].chunk(2, 1)
            y = torch.tanh(a) * torch.sigmoid(b)
            total = total + skip(y)
            x = x + y
        return self.out(F.relu(total))


class NBeats(nn.Module):
    """Blocks that each explain a part of the past (Oreshkin et al., arXiv 1905.10437)."""

    def __init__(self):
        super().__init__()
        dense = lambda: nn.Sequential(nn.Linear(STEPS, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, STEPS + 12))
        self.blocks = nn.ModuleList([dense() for _ in range(4)])

    def forward(self, x):
        forecast = 0
        for block in self.blocks:
            past, future = block(x).split([STEPS, 12], -1)
            x, forecast = x - past, forecast + future
        return forecast


class Forecaster(nn.Module):
    """Encoder and decoder of torch.nn, the decoder causal."""

    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Linear(FEATURES, WIDTH), nn.Linear(WIDTH, 1)
        self.net = nn.Transformer(WIDTH, 4, 1, 1, 128, batch_first=True)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(12))

    def forward(self, x, y):
        return self.out(self.net(self.embed(x), self.embed(y), tgt_mask=self.mask))


class SeriesDecomposition(nn.Module):
    """Trend and rest, a dense layer each (Zeng et al., arXiv 2205.13504)."""

    def __init__(self):
        super().__init__()
        self.trend, self.rest = nn.Linear(STEPS, 12), nn.Linear(STEPS, 12)

    def forward(self, x):
        x = x.transpose(1, 2)
        trend = F.avg_pool1d(F.pad(x, (6, 6), mode="replicate"), 13, 1)
        return self.trend(trend) + self.rest(x - trend)


TABLE = {
    "gru": lambda: (Recurrent(nn.GRU), series()),
    "gru_two_ways": lambda: (Recurrent(nn.GRU, bidirectional=True, num_layers=2), series()),
    "lstm": lambda: (Recurrent(nn.LSTM, num_layers=2), series()),
    "lstm_two_ways": lambda: (Recurrent(nn.LSTM, bidirectional=True), series()),
    "rnn_tanh": lambda: (Recurrent(nn.RNN), series()),
    "gru_unrolled": lambda: (Unrolled(), series()),
    "causal_convolutions": lambda: (Causal(), series()),
    "wavenet": lambda: (Wave(), series()),
    "n_beats": lambda: (NBeats(), series(4, STEPS)),
    "series_transformer": lambda: (Forecaster(), series() + series(4, 12, FEATURES)),
    "series_decomposition": lambda: (SeriesDecomposition(), series()),
}
