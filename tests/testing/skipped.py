"""SKIPPED: the exit code that ctest shows as skipped."""
SKIPPED = 77
# SPDX-License-Identifier: Apache-2.0
