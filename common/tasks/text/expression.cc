#include "common/tasks/text/expression.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/norm.h"
#include "common/tasks/text/mujoco_names.h"
#include "muParser.h"

namespace datacom::text {
namespace {

double Clip(double value, double low, double high) {
  if (std::isnan(low) || std::isnan(high)) return low + high;
  return value < low ? low : value > high ? high : value;
}
double Wrap(double angle) { return std::atan2(std::sin(angle), std::cos(angle)); }
double Not(double value) { return value == 0 ? 1 : 0; }
// muParser's own leave out a NaN that is not the first.
double Min(const double* values, int count) {
  double least = values[0];
  for (int i = 1; i < count; ++i) least = values[i] < least || std::isnan(values[i]) ? values[i] : least;
  return least;
}
double Max(const double* values, int count) {
  double largest = values[0];
  for (int i = 1; i < count; ++i) largest = values[i] > largest || std::isnan(values[i]) ? values[i] : largest;
  return largest;
}
double Norm1(const double* values, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += std::abs(values[i]);
  return sum;
}
double Norm2(const double* values, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += values[i] * values[i];
  return std::sqrt(sum);
}
double Distance(const double* values, int count) {
  if (count % 2 != 0) throw mu::ParserError("distance needs two lists of the same length");
  double sum = 0;
  for (int i = 0; i < count / 2; ++i) sum += (values[i] - values[count / 2 + i]) * (values[i] - values[count / 2 + i]);
  return std::sqrt(sum);
}

absl::Status AtColumn(size_t column, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("column ", column, ": ", why));
}

// muParser would take "=" for an assignment to a signal.
absl::Status RefuseAssignment(const std::string& text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '=') continue;
    const bool second = i > 0 && std::string("=<>!").find(text[i - 1]) != std::string::npos;
    const bool first = i + 1 < text.size() && text[i + 1] == '=';
    if (!second && !first) return AtColumn(i + 1, "\"=\" would assign; write \"==\" to compare");
  }
  return absl::OkStatus();
}

bool IsBefore(absl::string_view name) { return absl::StartsWith(name, "before."); }

std::string Listed(const std::vector<std::string>& names) {
  std::vector<std::string> listed;  // each signal once
  std::copy_if(names.begin(), names.end(), std::back_inserter(listed),
               [](const std::string& name) { return !IsBefore(name); });
  return absl::StrCat("the names are: ", absl::StrJoin(listed, ", "));
}

// A text without globs, and the column of the original for each of its characters and its end.
struct Expanded {
  std::string text;
  std::vector<size_t> columns;
};

absl::StatusOr<Expanded> ExpandGlobs(const std::string& text, const std::vector<std::string>& names) {
  Expanded expanded;
  const auto add = [&expanded](absl::string_view part, size_t column) {
    absl::StrAppend(&expanded.text, part);
    expanded.columns.resize(expanded.text.size(), column);
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '"') {
      add(text.substr(i, 1), i + 1);
      continue;
    }
    const size_t end = text.find('"', i + 1);
    if (end == std::string::npos) return AtColumn(i + 1, "the quote does not end");
    const std::string glob = text.substr(i + 1, end - i - 1);
    std::vector<std::string> found;
    for (const std::string& name : names) {
      if (IsBefore(name) == IsBefore(glob) && MatchesGlob(glob, name)) found.push_back(name);
    }
    if (found.empty()) return AtColumn(i + 1, absl::StrCat("no name matches \"", glob, "\"; ", Listed(names)));
    add(absl::StrJoin(found, ","), i + 1);
    i = end;
  }
  expanded.columns.push_back(text.size() + 1);
  return expanded;
}

absl::Status Explain(const mu::ParserError& error, const Expanded& expanded, const std::vector<std::string>& names) {
  const size_t column = expanded.columns[std::min<size_t>(std::max(error.GetPos(), 0), expanded.columns.size() - 1)];
  if (error.GetCode() == mu::ecUNASSIGNABLE_TOKEN) {
    return AtColumn(column, absl::StrCat("unknown name \"", error.GetToken(), "\"; ", Listed(names)));
  }
  return AtColumn(column, error.GetMsg());
}

}  // namespace

absl::StatusOr<Expression> Expression::Compile(const std::string& text, const std::vector<std::string>& names,
                                               double* values) {
  if (const absl::Status status = RefuseAssignment(text); !status.ok()) return status;
  absl::StatusOr<Expanded> expanded = ExpandGlobs(text, names);
  if (!expanded.ok()) return expanded.status();
  auto made = std::make_shared<mu::Parser>();
  mu::Parser& parser = *made;
  try {
    parser.DefineNameChars("0123456789_.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    parser.DefineFun("clip", &Clip);
    parser.DefineFun("hypot", &Norm);
    parser.DefineFun("wrap", &Wrap);
    parser.DefineFun("not", &Not);
    parser.DefineFun("min", &Min);
    parser.DefineFun("max", &Max);
    parser.DefineFun("norm1", &Norm1);
    parser.DefineFun("norm2", &Norm2);
    parser.DefineFun("distance", &Distance);
    parser.ClearConst();  // muParser's own take names that elements of a model may have: _e, _pi
    parser.DefineConst("pi", M_PI);
    for (size_t i = 0; i < names.size(); ++i) parser.DefineVar(names[i], values + i);
    parser.SetExpr(expanded->text);
    parser.Eval();  // compiles
    if (parser.GetNumResults() != 1) return AtColumn(1, "there are several values, separated by commas");
  } catch (const mu::ParserError& error) {
    return Explain(error, *expanded, names);
  }
  return Expression(std::move(made));
}

double Expression::Value() const {
  try {
    return parser_->Eval();
  } catch (const mu::ParserError&) {
    return std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
