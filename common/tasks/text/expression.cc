#include "common/tasks/text/expression.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muParser.h"

namespace datacom::text {
namespace {

double Clip(double value, double low, double high) { return value < low ? low : value > high ? high : value; }
double Hypot(double a, double b) { return std::hypot(a, b); }
double Wrap(double angle) { return std::atan2(std::sin(angle), std::cos(angle)); }
double Not(double value) { return value == 0 ? 1 : 0; }

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

absl::Status Explain(const mu::ParserError& error, const std::vector<std::string>& names) {
  const size_t column = error.GetPos() + 1;
  if (error.GetCode() == mu::ecUNASSIGNABLE_TOKEN) {
    std::vector<std::string> listed;  // each signal once
    std::copy_if(names.begin(), names.end(), std::back_inserter(listed),
                 [](const std::string& name) { return !absl::StartsWith(name, "before."); });
    return AtColumn(
        column, absl::StrCat("unknown name \"", error.GetToken(), "\"; the names are: ", absl::StrJoin(listed, ", ")));
  }
  return AtColumn(column, error.GetMsg());
}

}  // namespace

struct Expression::Compiled {
  mu::Parser parser;
};

Expression::Expression(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
Expression::Expression(Expression&&) noexcept = default;
Expression& Expression::operator=(Expression&&) noexcept = default;
Expression::~Expression() = default;

absl::StatusOr<Expression> Expression::Compile(const std::string& text, const std::vector<std::string>& names,
                                               double* values) {
  if (const absl::Status status = RefuseAssignment(text); !status.ok()) return status;
  auto compiled = std::make_unique<Compiled>();
  mu::Parser& parser = compiled->parser;
  try {
    parser.DefineNameChars("0123456789_.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    parser.DefineFun("clip", &Clip);
    parser.DefineFun("hypot", &Hypot);
    parser.DefineFun("wrap", &Wrap);
    parser.DefineFun("not", &Not);
    parser.DefineConst("pi", M_PI);
    for (size_t i = 0; i < names.size(); ++i) parser.DefineVar(names[i], values + i);
    parser.SetExpr(text);
    parser.Eval();  // compiles
    if (parser.GetNumResults() != 1) return AtColumn(1, "there are several values, separated by commas");
  } catch (const mu::ParserError& error) {
    return Explain(error, names);
  }
  return Expression(std::move(compiled));
}

double Expression::Value() const {
  try {
    return compiled_->parser.Eval();
  } catch (const mu::ParserError&) {
    return std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
