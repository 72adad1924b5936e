"""The 95 % intervals of the tables and the claims. Student's t is that of reports (deploy/report/statistics.h): it comes from the library
of a build, build/release or the folder in DATACOM_BUILD."""
import collections
import ctypes
import functools
import math
import os
import statistics
import sys

from results import ROOT

Sample = collections.namedtuple("Sample", "mean variance count")


@functools.lru_cache(maxsize=None)
def native_student_t():
    path = os.path.join(os.environ.get("DATACOM_BUILD", os.path.join(ROOT, "build", "release")), "lib", "libdatacom_python.so")
    if not os.path.exists(path):
        sys.exit(f"{path} is missing: run ./datacom build, or name another build folder in DATACOM_BUILD")
    function = ctypes.CDLL(path, mode=os.RTLD_LOCAL | os.RTLD_DEEPBIND).datacom_records_student_t
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double, ctypes.c_double]
    if function(1.0, 0.99) < 63:  # 63.66; of builds that knew one level only 12.71
        sys.exit(f"{path} is of an older build: run ./datacom build")
    return function


def student_t(freedom, level=0.95):
    """The t with P(|T| <= t) = level, also for degrees of freedom that are not whole."""
    return native_student_t()(freedom, level)


def sample(values):
    """The Sample of one value or more. `statistics` is exact, so that equal values have no variance."""
    return Sample(statistics.mean(values), statistics.variance(values) if len(values) > 1 else math.nan, len(values))


def half_width(values):
    """Half the width of the interval of the mean of two values or more."""
    return student_t(len(values) - 1) * math.sqrt(statistics.variance(values) / len(values))


def welch(first, second, level=0.95, share=1):
    """(first mean - share * second mean, half width of its interval), with the variances of both samples. Each has two values or more."""
    difference = first.mean - share * second.mean
    errors = [first.variance / first.count, share ** 2 * second.variance / second.count]
    if sum(errors) == 0:
        return difference, 0.0
    freedom = sum(errors) ** 2 / sum(own ** 2 / (of.count - 1) for own, of in zip(errors, (first, second)))
    return difference, student_t(freedom, level) * math.sqrt(sum(errors))


def deciding_seeds(first, second, judge, most):
    """(the fewest values of each sample that decide, the verdict), if more values leave means and variances as they are; at least as many as the
    larger one has. judge(first, second) is "undecided" while it decides nothing. (None, None) beyond `most`."""
    for count in range(max(first.count, second.count), most + 1):
        if (verdict := judge(first._replace(count=count), second._replace(count=count))) != "undecided":
            return count, verdict
    return None, None
# SPDX-License-Identifier: Apache-2.0
