#include "deploy/report/colours.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <map>

#include "absl/strings/str_format.h"
#include "common/config/algorithms.h"

namespace datacom::report {
namespace {

using Rgb = std::array<int, 3>;

constexpr Rgb kRamp[] = {
    {0x44, 0x01, 0x54}, {0x3b, 0x52, 0x8b}, {0x21, 0x91, 0x8c}, {0x5e, 0xc9, 0x62}, {0xc8, 0xa4, 0x15}};
constexpr const char* kGreys[] = {"#5b6675", "#97a1ad", "#2f3742"};
constexpr char kUnknown[] = "#222222";  // an algorithm that this build does not know

const std::vector<std::vector<int>>& Strokes() {
  static const auto* const kStrokes = new std::vector<std::vector<int>>{{}, {6, 4}, {2, 3}, {10, 3, 2, 3}};
  return *kStrokes;
}

// The colour at `place` of the ramp, from 0 to 1, linear between its entries.
std::string OnRamp(double place) {
  const double at = place * static_cast<double>(std::size(kRamp) - 1);
  const size_t below = std::min(static_cast<size_t>(at), std::size(kRamp) - 2);
  std::string colour = "#";
  for (size_t i = 0; i < 3; ++i) {
    const double low = kRamp[below][i], high = kRamp[below + 1][i];
    absl::StrAppendFormat(&colour, "%02x",
                          static_cast<int>(std::floor(low + (high - low) * (at - static_cast<double>(below)) + 0.5)));
  }
  return colour;
}

// True for several groups of one algorithm.
bool ShareAlgorithm(const std::vector<Group>& groups) {
  return groups.size() > 1 && std::all_of(groups.begin(), groups.end(), [&groups](const Group& group) {
           return group.run().algorithm == groups[0].run().algorithm;
         });
}

}  // namespace

std::vector<Look> LooksOf(const std::vector<Group>& groups) {
  const bool ramp = ShareAlgorithm(groups);
  std::map<std::string, size_t> used;
  std::vector<Look> looks;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (ramp) {
      looks.push_back({OnRamp(static_cast<double>(i) / static_cast<double>(groups.size() - 1)), {}});
      continue;
    }
    const std::string& name = groups[i].run().algorithm;
    const AlgorithmInfo* const algorithm = FindAlgorithm(name);
    looks.push_back({algorithm == nullptr ? kUnknown : algorithm->colour, Strokes()[used[name]++ % Strokes().size()]});
  }
  return looks;
}

std::string BaselineColour(size_t index) { return kGreys[index % std::size(kGreys)]; }

}  // namespace datacom::report
// SPDX-License-Identifier: Apache-2.0
