// An HTTP server for one page: answers GET of one path and then closes the connection. With certificates it speaks TLS
// (1.2 or newer) and requires a client certificate of the same authority, as the gRPC servers of common/rpc do; it does
// not ask for the run's token.
//
// One thread of the server does all work and calls `page`. No client makes it wait: a connection is closed when it is
// not done within `patience`, however it spends the time, and the oldest one is closed when there are more than
// kMaxConnections. A request has at most kMaxRequestBytes. Start blocks while it resolves the address; the destructor
// closes every connection and waits only for a page that is being made.
#ifndef DATACOM_COMMON_METRICS_HTTP_SERVER_H_
#define DATACOM_COMMON_METRICS_HTTP_SERVER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace datacom {

class HttpServer {
 public:
  static constexpr size_t kMaxConnections = 16;
  static constexpr size_t kMaxRequestBytes = 8192;

  struct Options {
    std::string listen;  // host:port; port 0 picks one
    std::string path;    // of the page, such as /metrics
    std::string content_type;
    std::function<std::string()> page;
    // Folder with ca.crt, tls.crt and tls.key; empty: plain text. Each new connection uses the files as they are then,
    // or, with a warning in the log, the last ones that were sound.
    std::string tls;
    std::chrono::milliseconds patience{5000};  // below Prometheus' usual scrape_timeout of 10 s
  };
  // UNAVAILABLE with the address and the cause when it cannot listen; INVALID_ARGUMENT naming the file when a
  // certificate file is missing or unusable.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const Options& options);
  virtual ~HttpServer() = default;
  virtual const std::string& address() const = 0;  // host:port actually bound
};

}  // namespace datacom

#endif  // DATACOM_COMMON_METRICS_HTTP_SERVER_H_
// SPDX-License-Identifier: Apache-2.0
