// An HTTP server for one page, and optionally for other paths and for a stream of server-sent events. It answers a GET
// and then closes the connection; a stream stays open. With certificates it speaks TLS (1.2 or newer) and requires a
// client certificate of the same authority, as the gRPC servers of common/rpc do; it does not ask for the run's token.
//
// One thread of the server does all work and calls `page`. No client makes it wait: a connection is closed when it is
// not done within `patience`, however it spends the time, and the oldest one is closed when there are more than
// kMaxConnections. A request has at most kMaxRequestBytes. Start blocks while it resolves the address; the destructor
// closes every connection and waits only for a page that is being made.
//
// There are at most kMaxStreams streams; a further one is refused with 503. A stream sends the newest state when it
// begins and whenever another one was published; it skips what was published while it was sending. A stream is closed
// when its client does not take an event within `patience`. The server keeps the newest state, and those that are being
// sent.
#ifndef DATACOM_COMMON_METRICS_HTTP_SERVER_H_
#define DATACOM_COMMON_METRICS_HTTP_SERVER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace datacom {

class HttpServer {
 public:
  static constexpr size_t kMaxConnections = 16;
  static constexpr size_t kMaxRequestBytes = 8192;
  static constexpr size_t kMaxStreams = 64;

  struct Answer {
    std::string content_type, body;
  };
  struct Options {
    std::string listen;  // host:port; port 0 picks one
    std::string path;    // of the page, such as /metrics
    std::string content_type;
    std::function<std::string()> page;
    // Folder with ca.crt, tls.crt and tls.key; empty: plain text. Each new connection uses the files as they are then,
    // or, with a warning in the log, the last ones that were sound.
    std::string tls;
    std::chrono::milliseconds patience{5000};  // below Prometheus' usual scrape_timeout of 10 s

    // Answers a GET of any other path: `target` is path and query as the client sent them. Nothing: 404. The server's
    // thread calls it. Null: there are no other paths.
    std::function<std::optional<Answer>(const std::string& target)> others;

    std::string events;                                        // path of the stream; empty: none
    std::vector<std::pair<std::string, std::string>> headers;  // of every answer
    // If not empty: the names that a request may give for this server (header Host, without the port), in lower case.
    // Any other request is refused, and so is a stream or another path for a page of another site. So a page of another
    // site cannot read an answer, even if it makes its own name resolve to this server.
    std::vector<std::string> hosts;
    std::chrono::milliseconds heartbeat{15000};  // between comments on a stream, which find clients that are gone
  };
  // What streams show. Both texts are events (FormatEvent).
  struct State {
    std::string whole;   // gives a client the whole state
    std::string change;  // takes a client from the state published before to this one; empty: none
  };
  // UNAVAILABLE with the address and the cause when it cannot listen; INVALID_ARGUMENT naming the file when a
  // certificate file is missing or unusable.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const Options& options);
  virtual ~HttpServer() = default;
  virtual const std::string& address() const = 0;  // host:port actually bound
  virtual void Publish(State state) = 0;           // thread-safe; never blocks

  // Options of a page for a browser on this machine only, at path "/": names, headers and content type. policy: its
  // Content-Security-Policy.
  static Options ForThisMachine(const std::string& listen, const std::string& policy);
  // The names under which a browser on this machine, or behind a forwarded port, reaches a page.
  static const std::vector<std::string>& LoopbackNames();

  // `data` has no line breaks.
  static std::string FormatEvent(const std::string& name, const std::string& data);
};

}  // namespace datacom

#endif  // DATACOM_COMMON_METRICS_HTTP_SERVER_H_
// SPDX-License-Identifier: Apache-2.0
