#include "common/metrics/metrics.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "common/metrics/http_server.h"
#include "common/metrics/statistics.h"
#include "google/protobuf/text_format.h"
#include "prometheus/registry.h"
#include "prometheus/text_serializer.h"

namespace datacom {

extern const char kMetricTable[];  // metrics.textproto

namespace {

constexpr char kTextFormat[] = "text/plain; version=0.0.4; charset=utf-8";

[[noreturn]] void Abort(const std::string& message) {
  std::fprintf(stderr, "metrics: %s\n", message.c_str());
  std::abort();
}

// True if every process of `role` exports this metric from its start.
bool BelongsTo(const v1::Metric& metric, const std::string& role) {
  if (role == "learner" && absl::StartsWith(metric.name(), "datacom_member_")) return true;
  return absl::StartsWith(metric.name(), "datacom_" + role + "_");
}

const v1::Metric& Find(const std::string& name, absl::string_view type, const Metrics::Labels& labels) {
  for (const v1::Metric& metric : MetricTable().metric()) {
    if (metric.name() != name) continue;
    if (metric.type() != type) Abort(absl::StrCat(name, " is a ", metric.type(), ", not a ", type));
    bool same = labels.size() == static_cast<size_t>(metric.label_size());
    for (const std::string& label : metric.label()) same = same && labels.count(label) == 1;
    if (!same) Abort(absl::StrCat(name, " has other labels in the table"));
    return metric;
  }
  Abort(absl::StrCat("no metric ", name, " in the table"));
}

}  // namespace

Metrics::Metrics(const Options& options) : registry_(std::make_shared<prometheus::Registry>()) {
  if (!options.run.empty()) constant_["run"] = options.run;
  if (!options.task.empty()) constant_["task"] = options.task;
  if (!options.algorithm.empty()) constant_["algorithm"] = options.algorithm;
  // rate() misses the event with which a series appears, so series whose labels are known start at 0.
  for (const v1::Metric& metric : MetricTable().metric()) {
    if (!BelongsTo(metric, options.role)) continue;
    if (metric.label().empty()) StartAtZero(metric, {});
    for (const std::string& value : metric.value()) StartAtZero(metric, {{metric.label(0), value}});
  }
  gauge("datacom_build_info", {{"version", Version()}, {"revision", Revision()}, {"role", options.role}}).Set(1);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  gauge("datacom_up_timestamp_seconds").Set(std::chrono::duration<double>(now).count());
}

Metrics::~Metrics() = default;

void Metrics::StartAtZero(const v1::Metric& metric, const Labels& labels) {
  if (metric.type() == "counter") counter(metric.name(), labels);
  if (metric.type() == "gauge") gauge(metric.name(), labels);
  if (metric.type() == "histogram") histogram(metric.name(), labels);
}

absl::Status Metrics::Listen(const std::string& listen, const std::string& tls) {
  HttpServer::Options options;
  options.listen = listen;
  options.path = "/metrics";
  options.content_type = kTextFormat;
  options.page = [this] { return Scrape(); };
  options.tls = tls;
  ASSIGN_OR_RETURN(server_, Annotate(HttpServer::Start(options), "metrics"));
  address_ = server_->address();
  return absl::OkStatus();
}

// The registry keeps one family of a name, which the first call makes.
prometheus::Counter& Metrics::counter(const std::string& name, const Labels& labels) {
  const v1::Metric& metric = Find(name, "counter", labels);
  return prometheus::BuildCounter().Name(name).Help(metric.help()).Labels(constant_).Register(*registry_).Add(labels);
}

prometheus::Gauge& Metrics::gauge(const std::string& name, const Labels& labels) {
  const v1::Metric& metric = Find(name, "gauge", labels);
  return prometheus::BuildGauge().Name(name).Help(metric.help()).Labels(constant_).Register(*registry_).Add(labels);
}

prometheus::Histogram& Metrics::histogram(const std::string& name, const Labels& labels) {
  const v1::Metric& metric = Find(name, "histogram", labels);
  const prometheus::Histogram::BucketBoundaries buckets(metric.bucket().begin(), metric.bucket().end());
  auto& family = prometheus::BuildHistogram().Name(name).Help(metric.help()).Labels(constant_).Register(*registry_);
  return family.Add(labels, buckets);
}

std::string Metrics::Scrape() const { return prometheus::TextSerializer().Serialize(registry_->Collect()); }

const v1::MetricTable& MetricTable() {
  static const auto* const kTable = [] {
    auto* const table = new v1::MetricTable;
    if (!google::protobuf::TextFormat::ParseFromString(kMetricTable, table)) Abort("metrics.textproto has an error");
    for (const EpochStatistic& statistic : Statistics()) {
      if (!statistic.about().has_help()) continue;
      v1::Metric* const metric = table->add_metric();
      metric->set_name(statistic.gauge());
      metric->set_type("gauge");
      metric->set_help(statistic.about().help());
      metric->add_label("member");
    }
    return table;
  }();
  return *kTable;
}

absl::StatusOr<std::unique_ptr<Metrics>> Metrics::Start(const Options& options) {
  std::unique_ptr<Metrics> metrics(new Metrics(options));
  if (!options.listen.empty()) RETURN_IF_ERROR(metrics->Listen(options.listen, options.tls));
  RETURN_IF_ERROR(WriteAddressFile(options.address_file, metrics->address()));
  return metrics;
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
