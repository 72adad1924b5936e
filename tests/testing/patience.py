"""PATIENCE: seconds that a test waits for what must happen, so long that only a hang is longer (patience.h has more).

FACTOR scales time limits that have a reason of their own.
"""
import os

FACTOR = float(os.environ.get("DATACOM_TEST_PATIENCE", 1))
PATIENCE = 600 * FACTOR
# SPDX-License-Identifier: Apache-2.0
