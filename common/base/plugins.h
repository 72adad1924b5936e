// Plug-ins: tasks, acting rules and algorithms from outside the tree, in libraries that programs load before they look
// up any name (an example: deploy/examples/plugin).
//
// Plug-in NAME is the file NAME.so, which every program loads: models of tasks, acting rules, facts of algorithms.
// Beside it may be NAME.simulator.so for programs that step tasks, and NAME.learner.so for the learner. Their symbols
// come from the program, which exports those of datacom (deploy/dev/cmake/plugin_symbols.txt), so a plug-in links no
// library of its own copy of them.
//
// The variable DATACOM_PLUGINS names the files NAME.so, separated by ":"; `datacom --plugin` adds to it, and the
// processes of a run inherit it. Nothing else loads code: an experiment only names the plug-ins that it needs.
#ifndef DATACOM_COMMON_BASE_PLUGINS_H_
#define DATACOM_COMMON_BASE_PLUGINS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace datacom {

inline constexpr char kPluginsVariable[] = "DATACOM_PLUGINS";

enum class PluginPart { kSimulator, kLearner };

// Loads what DATACOM_PLUGINS names and has not been loaded, with these parts. INVALID_ARGUMENT, naming the file: it
// does not exist, is no plug-in, was built for another version, or needs what this program does not have. A file that
// does not fit is refused before any of its code runs. Thread-safe.
absl::Status LoadPlugins(const std::vector<PluginPart>& parts);
std::vector<std::string> LoadedPlugins();  // names, sorted
// INVALID_ARGUMENT, naming the first of these plug-ins that is not loaded.
absl::Status CheckPlugins(const std::vector<std::string>& needed);

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_PLUGINS_H_
// SPDX-License-Identifier: Apache-2.0
