#include "common/metrics/metrics.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/version.h"
#include "prometheus/exposer.h"
#include "prometheus/registry.h"
#include "prometheus/text_serializer.h"

namespace datacom {
namespace {

// How long a client may take to send its request. The one thread of the server serves nobody else in that time.
constexpr char kRequestTimeoutMs[] = "1000";

[[noreturn]] void Abort(const std::string& message) {
  std::fprintf(stderr, "metrics: %s\n", message.c_str());
  std::abort();
}

bool StartsWith(const std::string& text, const std::string& prefix) { return text.rfind(prefix, 0) == 0; }

// Whether every process of `role` exports this metric from its start.
bool BelongsTo(const MetricInfo& metric, const std::string& role) {
  if (role == "learner" && StartsWith(metric.name, "datacom_member_")) return true;
  return StartsWith(metric.name, "datacom_" + role + "_");
}

const MetricInfo& Find(const std::string& name, const std::string& type, const Metrics::Labels& labels) {
  for (const MetricInfo& metric : MetricTable()) {
    if (metric.name != name) continue;
    if (metric.type != type) Abort(absl::StrCat(name, " is a ", metric.type, ", not a ", type));
    bool same = labels.size() == metric.labels.size();
    for (const std::string& label : metric.labels) same = same && labels.count(label) == 1;
    if (!same) Abort(absl::StrCat(name, " has other labels in the table"));
    return metric;
  }
  Abort(absl::StrCat("no metric ", name, " in the table"));
}

// Wakes a server of this process by a connection that is closed at once. Ignores errors.
void WakeServer(const std::string& address) {
  const size_t colon = address.rfind(':');
  sockaddr_in peer = {};
  peer.sin_family = AF_INET;
  peer.sin_port = htons(static_cast<uint16_t>(std::atoi(address.substr(colon + 1).c_str())));
  const std::string host = address.substr(0, colon);
  if (host == "0.0.0.0" || ::inet_pton(AF_INET, host.c_str(), &peer.sin_addr) != 1)
    peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  (void)::connect(fd, reinterpret_cast<const sockaddr*>(&peer), sizeof peer);
  ::close(fd);
}

class PrometheusMetrics : public Metrics {
 public:
  explicit PrometheusMetrics(const Options& options) : registry_(std::make_shared<prometheus::Registry>()) {
    if (!options.run.empty()) constant_["run"] = options.run;
    if (!options.task.empty()) constant_["task"] = options.task;
    if (!options.algorithm.empty()) constant_["algorithm"] = options.algorithm;
    for (const MetricInfo& metric : MetricTable()) {
      if (BelongsTo(metric, options.role)) StartAtZero(metric);
    }
    gauge("datacom_build_info", {{"version", Version()}, {"revision", Revision()}, {"role", options.role}}).Set(1);
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    gauge("datacom_up_timestamp_seconds", {}).Set(std::chrono::duration<double>(now).count());
  }

  // The HTTP library checks its stop flag only every 2 s and at each connection, so connect until it has stopped.
  ~PrometheusMetrics() override {
    if (exposer_ == nullptr) return;
    const std::future<void> stopped = std::async(std::launch::async, [this] { exposer_.reset(); });
    while (stopped.wait_for(std::chrono::milliseconds(5)) != std::future_status::ready) WakeServer(address_);
  }

  absl::Status Listen(const std::string& listen) {
    try {
      exposer_ = std::make_unique<prometheus::Exposer>(std::vector<std::string>{
          "listening_ports", listen, "num_threads", "1", "request_timeout_ms", kRequestTimeoutMs});
      exposer_->RegisterCollectable(registry_);
      const std::vector<int> ports = exposer_->GetListeningPorts();
      if (ports.empty()) return absl::UnavailableError(absl::StrCat("metrics: no port bound for ", listen));
      const size_t colon = listen.rfind(':');
      address_ = absl::StrCat(colon == std::string::npos ? "0.0.0.0" : listen.substr(0, colon), ":", ports.front());
    } catch (const std::exception&) {  // its message has no details
      return absl::UnavailableError(absl::StrCat("metrics: cannot listen on ", listen,
                                                 ": the port is in use or the address is not one of this machine"));
    }
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }

  prometheus::Counter& counter(const std::string& name, const Labels& labels) override {
    const MetricInfo& metric = Find(name, "counter", labels);
    MutexLock lock(&mutex_);
    prometheus::Family<prometheus::Counter>*& family = counters_[name];
    if (family == nullptr) {
      family = &prometheus::BuildCounter().Name(name).Help(metric.help).Labels(constant_).Register(*registry_);
    }
    return family->Add(labels);
  }

  prometheus::Gauge& gauge(const std::string& name, const Labels& labels) override {
    const MetricInfo& metric = Find(name, "gauge", labels);
    MutexLock lock(&mutex_);
    prometheus::Family<prometheus::Gauge>*& family = gauges_[name];
    if (family == nullptr)
      family = &prometheus::BuildGauge().Name(name).Help(metric.help).Labels(constant_).Register(*registry_);
    return family->Add(labels);
  }

  prometheus::Histogram& histogram(const std::string& name, const Labels& labels) override {
    const MetricInfo& metric = Find(name, "histogram", labels);
    MutexLock lock(&mutex_);
    prometheus::Family<prometheus::Histogram>*& family = histograms_[name];
    if (family == nullptr) {
      family = &prometheus::BuildHistogram().Name(name).Help(metric.help).Labels(constant_).Register(*registry_);
    }
    return family->Add(labels, metric.buckets);
  }

  std::string Scrape() const override { return prometheus::TextSerializer().Serialize(registry_->Collect()); }

 private:
  // rate() misses the event with which a series appears, so series whose labels are known start at 0.
  void StartAtZero(const MetricInfo& metric) {
    if (metric.labels.empty()) return Touch(metric, {});
    for (const std::string& value : metric.values) Touch(metric, {{metric.labels.front(), value}});
  }
  void Touch(const MetricInfo& metric, const Labels& labels) {
    if (metric.type == "counter") counter(metric.name, labels);
    if (metric.type == "gauge") gauge(metric.name, labels);
    if (metric.type == "histogram") histogram(metric.name, labels);
  }

  Labels constant_;
  std::string address_;
  Mutex mutex_;
  std::map<std::string, prometheus::Family<prometheus::Counter>*> counters_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, prometheus::Family<prometheus::Gauge>*> gauges_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, prometheus::Family<prometheus::Histogram>*> histograms_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<prometheus::Registry> registry_;
  std::unique_ptr<prometheus::Exposer> exposer_;  // last, so that serving stops before the registry is destroyed
};

}  // namespace

absl::StatusOr<std::unique_ptr<Metrics>> Metrics::Start(const Options& options) {
  auto metrics = std::make_unique<PrometheusMetrics>(options);
  if (!options.listen.empty()) {
    const absl::Status status = metrics->Listen(options.listen);
    if (!status.ok()) return status;
  }
  return std::unique_ptr<Metrics>(std::move(metrics));
}

}  // namespace datacom
