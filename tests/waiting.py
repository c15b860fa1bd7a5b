# SPDX-License-Identifier: Apache-2.0
"""Waits for conditions, however long a busy machine takes to make them true."""
import time

# What a machine needs that is busy with other things: a test that passes does not wait for it.
PATIENCE = 60


def eventually(condition, what, seconds=PATIENCE):
    """Waits until condition() is true, and returns its value."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.02)
    return value
