#include "common/metrics/http_server.h"

#include <deque>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "boost/asio/io_context.hpp"
#include "boost/asio/ip/tcp.hpp"
#include "boost/asio/ssl/stream.hpp"
#include "boost/asio/steady_timer.hpp"
#include "boost/beast/core/flat_buffer.hpp"
#include "boost/beast/core/tcp_stream.hpp"
#include "boost/beast/http.hpp"
#include "boost/beast/ssl.hpp"
#include "common/base/status.h"
#include "common/metrics/certificate_files.h"

namespace datacom {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

// How long to wait before the next connection is accepted when accepting failed, such as for lack of descriptors.
constexpr std::chrono::milliseconds kAcceptPause{100};

http::response<http::string_body> Answer(const HttpServer::Options& options,
                                         const http::request<http::empty_body>& request) {
  http::response<http::string_body> answer(http::status::ok, 11);
  const std::string target(request.target());
  if (target.substr(0, target.find('?')) != options.path) {
    answer.result(http::status::not_found);
  } else if (request.method() != http::verb::get) {
    answer.result(http::status::method_not_allowed);
    answer.set(http::field::allow, "GET");
  } else {
    answer.set(http::field::content_type, options.content_type);
    answer.body() = options.page();
  }
  answer.keep_alive(false);
  answer.prepare_payload();
  return answer;
}

class Connection {
 public:
  virtual ~Connection() = default;
  virtual void Close() = 0;  // its pending operation fails, which ends it
};

// One connection over a stream of TCP or TLS: handshake, request, answer, end. Its pending operation keeps it alive; an
// operation that fails or exceeds the patience is the last one.
template <class Stream>
class Conversation : public Connection, public std::enable_shared_from_this<Conversation<Stream>> {
 public:
  Conversation(const HttpServer::Options& options, Stream stream, CertificateFiles::Context context)
      : options_(options), context_(std::move(context)), stream_(std::move(stream)) {
    parser_.header_limit(HttpServer::kMaxRequestBytes);
  }

  void Start() {
    beast::get_lowest_layer(stream_).expires_after(options_.patience);  // for all operations together
    if constexpr (kTls) {
      stream_.async_handshake(asio::ssl::stream_base::server, [self = this->shared_from_this()](error_code error) {
        if (!error) self->Read();
      });
    } else {
      Read();
    }
  }

  void Close() override { beast::get_lowest_layer(stream_).close(); }

 private:
  static constexpr bool kTls = !std::is_same_v<Stream, beast::tcp_stream>;

  void Read() {
    http::async_read_header(stream_, buffer_, parser_, [self = this->shared_from_this()](error_code error, size_t) {
      if (!error) self->Write();
    });
  }

  void Write() {
    answer_ = Answer(options_, parser_.get());
    http::async_write(stream_, answer_, [self = this->shared_from_this()](error_code error, size_t) {
      if (!error) self->End();
    });
  }

  void End() {
    if constexpr (kTls) {
      stream_.async_shutdown([self = this->shared_from_this()](error_code /*error*/) {});
    } else {
      error_code ignored;
      stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    }
  }

  const HttpServer::Options& options_;
  const CertificateFiles::Context context_;  // null without TLS; outlives the stream
  Stream stream_;
  beast::flat_buffer buffer_{HttpServer::kMaxRequestBytes};
  http::request_parser<http::empty_body> parser_;
  http::response<http::string_body> answer_;
};

class BeastServer : public HttpServer {
 public:
  explicit BeastServer(const Options& options) : options_(options), acceptor_(io_), pause_(io_) {}

  ~BeastServer() override {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Start() {
    if (!options_.tls.empty()) {
      ASSIGN_OR_RETURN(files_, CertificateFiles::Open(options_.tls));
    }
    const size_t colon = options_.listen.rfind(':');
    const std::string host = options_.listen.substr(0, colon);
    error_code error =
        colon == std::string::npos ? asio::error::invalid_argument : Listen(host, options_.listen.substr(colon + 1));
    const tcp::endpoint bound = error ? tcp::endpoint() : acceptor_.local_endpoint(error);
    if (error) return absl::UnavailableError(absl::StrCat("cannot listen on ", options_.listen, ": ", error.message()));
    address_ = absl::StrCat(host, ":", bound.port());
    Accept();
    thread_ = std::thread([this] { io_.run(); });
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }

 private:
  error_code Listen(const std::string& host, const std::string& port) {
    const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';  // an IPv6 address
    error_code error;
    const auto found = tcp::resolver(io_).resolve(bracketed ? host.substr(1, host.size() - 2) : host, port,
                                                  tcp::resolver::passive | tcp::resolver::numeric_service, error);
    if (error) return error;
    const tcp::endpoint endpoint = *found.begin();
    if (acceptor_.open(endpoint.protocol(), error)) return error;
    if (acceptor_.set_option(tcp::acceptor::reuse_address(true), error)) return error;
    if (acceptor_.bind(endpoint, error)) return error;
    return acceptor_.listen(asio::socket_base::max_listen_connections, error);
  }

  void Accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      if (!error) {
        Serve(std::move(socket));
        return Accept();
      }
      pause_.expires_after(kAcceptPause);
      pause_.async_wait([this](error_code /*error*/) { Accept(); });
    });
  }

  void Serve(tcp::socket socket) {
    beast::tcp_stream stream(std::move(socket));
    if (!files_.has_value()) return Begin(std::move(stream), nullptr);
    const CertificateFiles::Context context = files_->Current();
    Begin(beast::ssl_stream<beast::tcp_stream>(std::move(stream), *context), context);
  }

  template <class Stream>
  void Begin(Stream stream, const CertificateFiles::Context& context) {
    std::erase_if(connections_, [](const std::weak_ptr<Connection>& one) { return one.expired(); });
    if (connections_.size() >= kMaxConnections) {
      if (const std::shared_ptr<Connection> oldest = connections_.front().lock()) oldest->Close();
      connections_.pop_front();
    }
    const auto connection = std::make_shared<Conversation<Stream>>(options_, std::move(stream), context);
    connections_.push_back(connection);
    connection->Start();
  }

  const Options options_;
  std::string address_;
  std::optional<CertificateFiles> files_;              // with TLS
  std::deque<std::weak_ptr<Connection>> connections_;  // oldest first
  asio::io_context io_{1};  // destroyed before what its pending operations use: it ends the conversations
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const Options& options) {
  auto server = std::make_unique<BeastServer>(options);
  RETURN_IF_ERROR(server->Start());
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
