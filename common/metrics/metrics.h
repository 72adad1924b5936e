// Prometheus metrics, served as /metrics over HTTP (common/metrics/http_server.h), in plain text or over mutual TLS.
// One table (metrics.textproto) defines every name, help text, label and bucket. Every series has the constant labels
// run, task and algorithm. A handle is looked up once; using it takes no lock (a histogram: a short mutex).
// Thread-safe. Names start with datacom_.
#ifndef DATACOM_COMMON_METRICS_METRICS_H_
#define DATACOM_COMMON_METRICS_METRICS_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "datacom/v1/metric.pb.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"

namespace prometheus {
class Registry;
}

namespace datacom {

class HttpServer;

class Metrics {
 public:
  struct Options {
    std::string role;  // replay, actor, learner, evaluator: also the label of datacom_build_info
    std::string run, task, algorithm;
    std::string listen;             // "127.0.0.1:0"; empty = no HTTP server (tests, tools)
    std::string tls = {};           // folder with ca.crt, tls.crt and tls.key; empty = plain text
    std::string address_file = {};  // gets the address; empty = none
  };
  // UNAVAILABLE, naming the address and the cause, when it cannot listen. INVALID_ARGUMENT, naming the file, when a
  // certificate file cannot be used.
  static absl::StatusOr<std::unique_ptr<Metrics>> Start(const Options& options);
  ~Metrics();
  const std::string& address() const { return address_; }  // host:port; empty without a server

  // The series of a name in the table; aborts on an unknown name or label (programming error). References are valid as
  // long as this object.
  using Labels = std::map<std::string, std::string>;
  prometheus::Counter& counter(const std::string& name, const Labels& labels = {});
  prometheus::Gauge& gauge(const std::string& name, const Labels& labels = {});
  prometheus::Histogram& histogram(const std::string& name, const Labels& labels = {});
  std::string Scrape() const;  // text exposition

 private:
  explicit Metrics(const Options& options);
  absl::Status Listen(const std::string& listen, const std::string& tls);
  void StartAtZero(const v1::Metric& metric, const Labels& labels);

  Labels constant_;
  std::string address_;
  const std::shared_ptr<prometheus::Registry> registry_;
  std::unique_ptr<HttpServer> server_;  // last, so that serving stops before the registry is destroyed
};

// The table, with a gauge for each statistic that has one (statistics.h). For tests.
const v1::MetricTable& MetricTable();

}  // namespace datacom

#endif  // DATACOM_COMMON_METRICS_METRICS_H_
// SPDX-License-Identifier: Apache-2.0
