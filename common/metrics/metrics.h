// Prometheus metrics: every name, help text, label and bucket in one table (metrics.cc), constant labels run, task,
// algorithm on every series, /metrics over HTTP. Handles are looked up once and used on hot paths without lock or
// lookup (counters and gauges are atomics; a histogram takes a short mutex). Thread-safe. Names start with datacom_.
#ifndef DATACOM_COMMON_METRICS_METRICS_H_
#define DATACOM_COMMON_METRICS_METRICS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"

namespace datacom {

class Metrics {
 public:
  struct Options {
    std::string role;  // replay, actor, learner, evaluator: also the label of datacom_build_info
    std::string run, task, algorithm;
    std::string listen;  // "127.0.0.1:0"; empty = no HTTP server (tests, tools)
  };
  // UNAVAILABLE naming the address when it is taken.
  static absl::StatusOr<std::unique_ptr<Metrics>> Start(const Options& options);
  virtual ~Metrics() = default;
  virtual const std::string& address() const = 0;  // host:port; empty without a server

  // The series of a name in the table; aborts on an unknown name or label (programmer error). References live as long
  // as this.
  using Labels = std::map<std::string, std::string>;
  virtual prometheus::Counter& counter(const std::string& name, const Labels& labels = {}) = 0;
  virtual prometheus::Gauge& gauge(const std::string& name, const Labels& labels = {}) = 0;
  virtual prometheus::Histogram& histogram(const std::string& name, const Labels& labels = {}) = 0;
  virtual std::string Scrape() const = 0;  // text exposition, for tests
};

// One line of the table, for docs and tests.
struct MetricInfo {
  std::string name, type, help;
  std::vector<std::string> labels;
  std::vector<double> buckets;
  std::vector<std::string> values;  // every value of the one label, where the set is closed: these series start at 0
};
const std::vector<MetricInfo>& MetricTable();

}  // namespace datacom

#endif  // DATACOM_COMMON_METRICS_METRICS_H_
