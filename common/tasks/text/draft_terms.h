// Texts of a draft (mujoco_draft.cc): numbers, and terms of its expressions. Pure functions; thread-safe.
#ifndef DATACOM_COMMON_TASKS_TEXT_DRAFT_TERMS_H_
#define DATACOM_COMMON_TASKS_TEXT_DRAFT_TERMS_H_

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace datacom::text {

inline constexpr size_t kDraftWidth = 85;     // of an expression's line
inline constexpr double kDraftError = 0.025;  // of a position, as a share of its range

std::string Quoted(const std::string& text);     // in the text format
std::string InComment(const std::string& text);  // a stranger's text, without line breaks
// Four digits, or as many more as it takes to be wrong by at most `error`.
std::string Number(double value, double error = std::numeric_limits<double>::infinity());
std::string Span(double low, double high, const std::string& between);  // both ends as exactly as their distance needs
std::string Interval(double low, double high);

// The terms with a separator between them, as one text in quotes or, where that is long, several, which the format
// joins.
std::string QuotedTerms(const std::string& head, const std::vector<std::string>& terms, const std::string& separator,
                        const std::string& tail);

std::string Less(const std::string& name, double value, double error);  // "a - 0.5", "a + 0.5" or "a"
std::string SquareOf(const std::string& name, double at, double error = std::numeric_limits<double>::infinity());
// "(0.6 * n.w + 0.8 * n.x)", without the products with 0; "n.w" alone.
std::string Product(const std::string& n, const std::vector<double>& factors, const std::vector<std::string>& parts);
// 0 for the orientation `at`, a quaternion, and 1 for half a turn from it.
std::string Turned(const std::string& n, const double* at, const std::vector<std::string>& parts);

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_DRAFT_TERMS_H_
// SPDX-License-Identifier: Apache-2.0
