#include "common/tasks/text/draft_terms.h"

#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace datacom::text {

std::string Quoted(const std::string& text) { return absl::StrCat("\"", absl::Utf8SafeCEscape(text), "\""); }
std::string InComment(const std::string& text) { return absl::Utf8SafeCHexEscape(text); }
std::string Number(double value, double error) {
  std::string text;
  double read = 0;
  for (int digits = 4; digits <= std::numeric_limits<double>::max_digits10; ++digits) {
    text = absl::StrFormat("%.*g", digits, value);
    if (absl::SimpleAtod(text, &read) && std::abs(read - value) <= error) break;
  }
  return text == "-0" ? "0" : text;
}
std::string Span(double low, double high, const std::string& between) {
  const double error = kDraftError * (high - low);
  return absl::StrCat(Number(low, error), between, Number(high, error));
}
std::string Interval(double low, double high) { return absl::StrCat("{ low: ", Span(low, high, " high: "), " }"); }

std::string QuotedTerms(const std::string& head, const std::vector<std::string>& terms, const std::string& separator,
                        const std::string& tail) {
  std::string written, line = head;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (line.size() + terms[i].size() > kDraftWidth) {
      absl::StrAppend(&written, Quoted(line), "\n    ");
      line.clear();
    }
    absl::StrAppend(&line, terms[i], i + 1 < terms.size() ? separator : tail);
  }
  return written + Quoted(line);
}

std::string Less(const std::string& name, double value, double error) {
  const std::string size = Number(std::abs(value), error);
  return size == "0" ? name : absl::StrCat(name, value > 0 ? " - " : " + ", size);
}
std::string SquareOf(const std::string& name, double at, double error) {
  const std::string off = Less(name, at, error);
  return off == name ? name + "^2" : absl::StrCat("(", off, ")^2");
}

std::string Product(const std::string& n, const std::vector<double>& factors, const std::vector<std::string>& parts) {
  std::string sum;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string size = Number(std::abs(factors[i]));
    if (size == "0") continue;
    const std::string number = absl::StrCat(size == "1" ? "" : size + " * ", n, ".", parts[i]);
    const bool minus = factors[i] < 0;
    absl::StrAppend(&sum, sum.empty() ? minus ? "-" : "" : minus ? " - " : " + ", number);
  }
  return sum.find(' ') == std::string::npos && sum[0] != '-' ? sum : absl::StrCat("(", sum, ")");
}
std::string Turned(const std::string& n, const double* at, const std::vector<std::string>& parts) {
  return absl::StrCat("1 - ", Product(n, {at[0], at[1], at[2], at[3]}, parts), "^2");
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
