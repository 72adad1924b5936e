// Whether a Python environment is still the one of a run: its facts are asked again whenever it is started, and
// compared with those that the run has.
//
// Pure functions, except that Differences looks whether two interpreters are one file, and that CheckSame reads
// kAcceptEnvironment and logs; thread-safe.
#ifndef DATACOM_COMMON_TASKS_PYTHON_IDENTITY_H_
#define DATACOM_COMMON_TASKS_PYTHON_IDENTITY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "datacom/v1/python_task.pb.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom::python {

// Set: an environment that differs from the run's is stepped all the same, with the facts of the run.
// `datacom --accept-environment` sets it.
inline constexpr char kAcceptEnvironment[] = "DATACOM_ACCEPT_ENVIRONMENT";

// What differs, as "time limit 60 -> 80". Numbers of the first look may differ by 1e-6 of their size or of 1, Python by
// the last part of its version. What the run has not recorded is not compared.
std::vector<std::string> Differences(const v1::PythonTask& run, const v1::PythonTask& now);

// INVALID_ARGUMENT, with the differences, unless there are none, or the user accepts them and all numbers still fit.
absl::Status CheckSame(const v1::PythonTask& run, const v1::PythonTask& now);

// Sentences: each fact and where it comes from, with the options that replace one.
std::vector<std::string> DescribeFacts(const v1::TaskOptions& options);

// One line for build.txt, without its end: files with their SHA-256, interpreter, versions. Empty without an identity.
std::string CodeLine(const v1::PythonTask& task);

}  // namespace datacom::python

#endif  // DATACOM_COMMON_TASKS_PYTHON_IDENTITY_H_
// SPDX-License-Identifier: Apache-2.0
