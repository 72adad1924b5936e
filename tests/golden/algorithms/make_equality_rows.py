#!/usr/bin/env python3
"""Writes j_equality_rows.json: cases of the safe map with equations among its rows. Needs NumPy.

usage: make_equality_rows.py > j_equality_rows.json

It restates docs/safe_map.md 2.7 from the whole system J [a; v] + r = 0 of actions a and slack rates v, J = [J_I, A; J_E, 0],
with NumPy's singular values and pseudo-inverse. It shares no formula with common/safety/safe_map.cc, which never forms J.
"""

import json
import sys

import numpy as np

EPSILON = float(np.float32(1e-4))
SIZES = [(1, 0, 2), (1, 1, 1), (1, 1, 3), (1, 1, 7), (2, 0, 3), (2, 1, 4), (2, 2, 2), (3, 4, 6), (1, 5, 7), (2, 17, 7), (1, 34, 7)]
CASES = 4  # of each size: equations, inequalities, actions


def slack(k):
    return np.maximum(-k, 1e-5)


def null_basis(J):
    """Orthonormal columns that J maps to 0, from the singular values of J with rows of length 1."""
    unit = J / np.linalg.norm(J, axis=1, keepdims=True)
    _, values, right = np.linalg.svd(unit)
    return right[np.count_nonzero(values > 1e-12):].T


def root_of_square(M):
    """The square root of M M', from the singular values of M, which keep their digits where they are small."""
    vectors, values, _ = np.linalg.svd(M, full_matrices=False)
    return vectors @ np.diag(values) @ vectors.T


def smallest_solution(J, r):
    """The smallest z with J z + r = 0. Scaling the rows does not change it, because they are independent."""
    size = np.linalg.norm(J, axis=1)
    return -np.linalg.pinv(J / size[:, None]) @ (r / size)


def largest_share(fixed, tangent):
    """The largest s in [0, 1] with fixed + s tangent in the box, among all s at which an entry reaches a side."""
    sides = [(side - f) / t for f, t in zip(fixed, tangent) if t != 0 for side in (-1, 1)]
    inside = [s for s in [0.0, 1.0, *sides] if 0 <= s <= 1 and np.all(np.abs(fixed + s * tangent) <= 1 + 1e-12)]
    return max(inside)


def case(equations, inequalities, n, random):
    K = equations + inequalities
    gain, beta = random.uniform(1, 60), random.uniform(0.5, 4)
    kind = random.uniform(size=K)
    k = np.where(kind < 0.6, -random.uniform(0.01, 3, K), np.where(kind < 0.8, -random.uniform(0, 1e-3, K), random.uniform(0, 0.5, K)))
    k[inequalities:] = random.normal(size=equations) * 10.0 ** random.uniform(-6, -1, equations)
    J_G = random.normal(size=(K, n)) * 10.0 ** random.uniform(-1, 1, (K, 1))
    drift, u = random.normal(size=K), random.uniform(-1.3, 1.3, n)

    k_in, J_in, J_eq = k[:inequalities], J_G[:inequalities], J_G[inequalities:]
    A = np.diag(np.minimum(np.expm1(beta * slack(k_in)), 1e5 - 1))
    J = np.block([[J_in, A], [J_eq, np.zeros((equations, inequalities))]])
    r = drift + gain * np.concatenate([k_in + slack(k_in), k[inequalities:]])
    null = null_basis(J)
    basis = root_of_square(null[:n])
    offset = smallest_solution(J, r)[:n]
    fixed = smallest_solution(J_eq, r[inequalities:])
    tangent_space = null_basis(J_eq)
    values = np.linalg.svd(tangent_space.T @ null[:n], compute_uv=False)
    raw = basis @ np.clip(u, -1, 1) + offset
    in_box = fixed / max(1.0, np.max(np.abs(fixed)))
    scale = largest_share(in_box, raw - fixed)
    return {"equations": equations, "inequalities": inequalities, "n": n, "lam": gain, "beta": beta, "cons": k.tolist(),
            "J_G": J_G.tolist(), "drift": drift.tolist(), "alpha": u.tolist(), "basis": basis.tolist(), "fixed": fixed.tolist(),
            "action_before_rescale": raw.tolist(), "scale": scale, "action": (in_box + scale * (raw - fixed)).tolist(),
            "log_det": float(np.sum(np.log(values + EPSILON)))}


def main():
    random = np.random.default_rng(31)
    cases = [{"id": i, **case(*size, random)} for i, size in enumerate(size for size in SIZES for _ in range(CASES))]
    json.dump({"cases": cases}, sys.stdout)
    print()


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: Apache-2.0
