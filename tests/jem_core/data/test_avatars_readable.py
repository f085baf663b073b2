"""Labels and pixels agree: a small classifier reads the attributes of avatars at 32 pixels."""

import numpy as np
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from jem_core.data import avatars

TRAIN, TEST, EPOCHS, BATCH = 1200, 400, 6, 20


def small_net(attributes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 16, 96), nn.ReLU(), nn.Linear(96, attributes))


def test_a_small_classifier_reads_the_labels() -> None:
    rows = list(avatars.source(TRAIN + TEST, 32, seed=11, workers=1).rows)
    x = torch.from_numpy(np.stack([image for image, _ in rows])).float() / 255 - 0.5
    y = torch.from_numpy(np.stack([label for _, label in rows])).float()
    torch.manual_seed(0)
    net = small_net(len(avatars.NAMES))
    optimizer = torch.optim.Adam(net.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, EPOCHS * (TRAIN // BATCH))
    for _ in range(EPOCHS):
        for batch in torch.randperm(TRAIN).split(BATCH):
            loss = binary_cross_entropy_with_logits(net(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    net.eval()
    with torch.no_grad():
        right = ((net(x[TRAIN:]) > 0) == y[TRAIN:].bool()).float().mean(0)
    table = {name: round(float(share), 3) for name, share in zip(avatars.NAMES, right, strict=True)}
    assert float(right.mean()) >= 0.97, table
    assert float(right.min()) >= 0.85, table
