// An arithmetic expression of a task file over named numbers, such as "clip(1 - distance / 4, 0, 1)".
//
// Operators: + - * / ^, comparisons (1 or 0), && ||, a ? b : c. Functions: those of muParser (sin, cos, tan, asin,
// acos, atan, atan2, exp, ln, log10, sqrt, abs, sign, rint, min, max, sum, avg, ...), and clip(x, low, high), hypot(a,
// b), wrap(angle) into [-pi, pi], not(x), norm1(...), norm2(...): the sum of magnitudes and the Euclidean length of any
// number of values, distance(...): the Euclidean distance of the first half of the values from the second. Constant:
// pi. A glob in quotes stands for the names that match, separated by commas, as in norm2("action.*"); names that begin
// with "before." match only if the glob does.
//
// The library is muParser: it compiles to byte code that runs without allocating, Debian maintains it, and its upstream
// is alive; exprtk is faster but takes minutes to compile and is not in Debian 12. Not thread-safe; Value neither
// blocks nor allocates. The caller owns the numbers.
#ifndef DATACOM_COMMON_TASKS_TEXT_EXPRESSION_H_
#define DATACOM_COMMON_TASKS_TEXT_EXPRESSION_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace mu {
class Parser;
}

namespace datacom::text {

class Expression {
 public:
  // `values` [names.size()] must outlive the expression. INVALID_ARGUMENT with the column; for an unknown name the
  // message lists the names.
  static absl::StatusOr<Expression> Compile(const std::string& text, const std::vector<std::string>& names,
                                            double* values);
  double Value() const;  // NaN when it cannot be evaluated

 private:
  explicit Expression(std::shared_ptr<mu::Parser> parser) : parser_(std::move(parser)) {}
  std::shared_ptr<mu::Parser> parser_;
};

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_EXPRESSION_H_
// SPDX-License-Identifier: Apache-2.0
