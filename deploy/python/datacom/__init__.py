"""D-ATACOM from Python: tasks as Gymnasium environments, trained policies, and the records of runs."""

# SPDX-License-Identifier: Apache-2.0
