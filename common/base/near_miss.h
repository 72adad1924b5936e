// What a mistyped word may stand for. Pure functions; thread-safe.
#ifndef DATACOM_COMMON_BASE_NEAR_MISS_H_
#define DATACOM_COMMON_BASE_NEAR_MISS_H_

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace datacom {

// How many letters must be added, left out, replaced or exchanged with their neighbour.
inline int EditDistance(const std::string& a, const std::string& b) {
  std::vector<std::vector<int>> edits(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) edits[i][0] = static_cast<int>(i);
  for (size_t k = 0; k <= b.size(); ++k) edits[0][k] = static_cast<int>(k);
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t k = 1; k <= b.size(); ++k) {
      const int replaced = edits[i - 1][k - 1] + (a[i - 1] == b[k - 1] ? 0 : 1);
      edits[i][k] = std::min({replaced, edits[i - 1][k] + 1, edits[i][k - 1] + 1});
      if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1]) {
        edits[i][k] = std::min(edits[i][k], edits[i - 2][k - 2] + 1);
      }
    }
  }
  return edits[a.size()][b.size()];
}

// The distance of a word from a name that it may stand for: a quarter of its letters are wrong, or one but not all, or
// the name has it as a part. Nothing for any other name.
inline std::optional<int> Nearness(const std::string& word, const std::string& name) {
  constexpr size_t kPart = 4;       // letters of a word that may be a part
  constexpr int kPartDistance = 3;  // at most, of a name with the word as a part
  const int letters = static_cast<int>(word.size()), most = std::max(letters > 1 ? 1 : 0, letters / 4);
  const bool part = word.size() >= kPart && absl::StrContains(name, word);
  const int difference = letters - static_cast<int>(name.size());
  if (!part && std::abs(difference) > most) return std::nullopt;
  const int distance = EditDistance(word, name);
  if (part) return std::min(distance, kPartDistance);
  return distance <= most ? std::optional(distance) : std::nullopt;
}

// A name, and what is shown for it.
using Candidates = std::vector<std::pair<std::string, std::string>>;

// What is shown for the names nearest to `word`, at most three of them, in their order.
inline std::vector<std::string> Nearest(const std::string& word, const Candidates& candidates) {
  std::optional<int> least;
  std::vector<std::string> near;
  for (const auto& [name, shown] : candidates) {
    const std::optional<int> distance = Nearness(word, name);
    if (!distance || (least && *distance > *least)) continue;
    if (least != distance) near.clear();
    least = distance;
    if (near.size() < 3) near.push_back(shown);
  }
  return near;
}

// "; did you mean this or that?"; nothing where there is no word.
inline std::string Suggest(const std::vector<std::string>& words) {
  return words.empty() ? "" : absl::StrCat("; did you mean ", absl::StrJoin(words, " or "), "?");
}

// The same for the nearest of some names.
inline std::string DidYouMean(const std::string& word, const std::vector<std::string>& names) {
  Candidates candidates;
  for (const std::string& name : names) candidates.emplace_back(name, name);
  return Suggest(Nearest(word, candidates));
}

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_NEAR_MISS_H_
// SPDX-License-Identifier: Apache-2.0
