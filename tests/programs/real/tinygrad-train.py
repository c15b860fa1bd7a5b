# SPDX-License-Identifier: Apache-2.0
"""Trains a small convolutional network and prints each loss: tinygrad-train.py [STEPS], DEV=CUDA or CPU."""
import sys

import numpy as np
from tinygrad import Context, Tensor, nn

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 6

Tensor.manual_seed(7)
rng = np.random.default_rng(7)
images = Tensor(rng.standard_normal((32, 1, 12, 12), dtype=np.float32))
labels = Tensor(rng.integers(0, 10, 32).astype(np.int32))


class Net:
    def __init__(self):
        weights = np.random.default_rng(11)
        self.conv = Tensor(weights.standard_normal((8, 1, 3, 3), dtype=np.float32) * 0.3)
        self.dense = Tensor(weights.standard_normal((8 * 5 * 5, 10), dtype=np.float32) * 0.05)

    def __call__(self, x):
        return x.conv2d(self.conv).relu().max_pool2d().flatten(1).dot(self.dense)


net = Net()
optimizer = nn.optim.SGD([net.conv, net.dense], lr=0.05)
with Context(TRAINING=1):
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = net(images).sparse_categorical_crossentropy(labels).backward()
        optimizer.step()
        print(f"loss {loss.item():.6f}", flush=True)
