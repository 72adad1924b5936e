"""PATIENCE: seconds that a test waits for what must happen, so long that only a hang is longer (patience.h has more)."""
import os

PATIENCE = 600 * float(os.environ.get("DATACOM_TEST_PATIENCE", 1))
# SPDX-License-Identifier: Apache-2.0
