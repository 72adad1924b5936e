// What `datacom` and datacom-tools answer to options that they cannot parse. Pure functions; thread-safe.
#ifndef DATACOM_DEPLOY_TOOLS_MISTAKE_H_
#define DATACOM_DEPLOY_TOOLS_MISTAKE_H_

#include <algorithm>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/near_miss.h"

namespace datacom::tools {

// Whether --json is among the words, so that a program reads standard output. Of `bench` it names a file.
inline bool WantsJson(int argc, const char* const* argv) {
  const char* const* const end = std::find(argv, argv + argc, absl::string_view("--"));
  return std::find(argv, end, absl::string_view("--json")) != end &&
         (argc < 2 || argv[1] != absl::string_view("bench"));
}

// "; did you mean --steps?" after an option that the verb does not have.
inline std::string NearOption(const CLI::App& verb, const CLI::Error& error) {
  const std::string text = error.what();
  const size_t at = text.find(" --");
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr || at == std::string::npos) return "";
  const std::string word = text.substr(at + 1, text.find_first_of(" =", at + 1) - at - 1);
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (!option->get_group().empty()) names.push_back("--" + name);
    }
  }
  if (std::find(names.begin(), names.end(), word) != names.end()) return "";  // the word stands after "--"
  return DidYouMean(word, names);
}

// Says what is wrong with the options of a verb, then what to type instead.
inline std::string DescribeMistake(const CLI::App& app, const std::string& verb, const CLI::Error& error) {
  const std::vector<const CLI::App*> used =
      app.get_subcommands([&verb](const CLI::App* each) { return each->get_name() == verb; });
  if (used.empty()) return absl::StrCat("datacom: ", error.what(), "; `datacom --help` lists the verbs\n");
  const std::vector<CLI::App*> parts = used.front()->get_subcommands();  // of `task`
  const CLI::App& part = parts.empty() ? *used.front() : *parts.front();
  const std::string words = parts.empty() ? verb : absl::StrCat(verb, " ", part.get_name());
  std::string example;
  const std::string footer = part.get_footer();
  if (const size_t start = footer.find("Example: "); start != std::string::npos) {
    example = absl::StrCat(footer.substr(start, footer.find('\n', start) - start), "\n");
  }
  return absl::StrCat("datacom ", words, ": ", error.what(), NearOption(part, error), "\n", example, "`datacom ", words,
                      " --help` lists the options\n");
}

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_MISTAKE_H_
// SPDX-License-Identifier: Apache-2.0
