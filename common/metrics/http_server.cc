#include "common/metrics/http_server.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "boost/asio/io_context.hpp"
#include "boost/asio/ip/tcp.hpp"
#include "boost/asio/post.hpp"
#include "boost/asio/ssl/context.hpp"
#include "boost/asio/ssl/stream.hpp"
#include "boost/asio/steady_timer.hpp"
#include "boost/asio/write.hpp"
#include "boost/beast/core/flat_buffer.hpp"
#include "boost/beast/core/tcp_stream.hpp"
#include "boost/beast/http.hpp"
#include "boost/beast/ssl.hpp"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/rpc/certificates.h"

namespace datacom {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace ssl = boost::asio::ssl;
using asio::buffer;
using asio::ip::tcp;
using boost::system::error_code;

// The certificate files of a TLS server (common/rpc/certificates.h), which may be renewed at any time. Not thread-safe.
// Reading them blocks on the disk.
class CertificateFiles {
 public:
  using Context = std::shared_ptr<ssl::context>;  // for one or more connections

  explicit CertificateFiles(std::string folder) : folder_(std::move(folder)) {}

  // Makes a context of the current files. INVALID_ARGUMENT as ReadCertificateFiles, or when OpenSSL cannot use a
  // further certificate of a file.
  absl::Status Read() {
    ASSIGN_OR_RETURN(CertificateTexts texts, ReadCertificateFiles(folder_));
    if (texts == texts_) return absl::OkStatus();
    Context context = NewContext();
    error_code error;
    ERR_clear_error();
    if (context->add_certificate_authority(buffer(texts.authority), error) ||
        context->use_certificate_chain(buffer(texts.certificate), error) ||
        context->use_private_key(buffer(texts.key), ssl::context::pem, error)) {
      return absl::InvalidArgumentError(
          absl::StrCat("tls: OpenSSL refuses the files of ", folder_, ": ", error.message()));
    }
    context_ = std::move(context);
    texts_ = std::move(texts);
    return absl::OkStatus();
  }

  // The TLS context of the current files. If they are unusable, it keeps the last usable context and logs one warning
  // per change of the files.
  const Context& Current() {
    const absl::Status status = Read();
    const std::string warning(status.message());
    if (!status.ok() && warning != warning_) spdlog::warn("the certificates read before stay in use: {}", warning);
    warning_ = warning;
    return context_;
  }

 private:
  // Requires a client certificate of the authority. Sessions are never resumed, so that every connection is checked
  // against the authority of its time.
  static Context NewContext() {
    auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
    SSL_CTX* const native = context->native_handle();
    SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
    SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(native, 0);
    SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
    context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert);
    return context;
  }

  std::string folder_;
  CertificateTexts texts_;  // of context_
  std::string warning_;     // the last one in the log; empty once the files are sound
  Context context_;
};

// How long to wait before the next connection is accepted when accepting failed, such as for lack of descriptors.
constexpr std::chrono::milliseconds kAcceptPause{100};

using Request = http::request<http::empty_body>;
using Response = http::response<http::string_body>;

class Connection {
 public:
  virtual ~Connection() = default;
  virtual void Close() = 0;  // its pending operations fail, which ends it
  virtual bool IsStream() const = 0;
  virtual void Send(bool beat) = 0;  // on a stream: the newest state if the client lacks it, else a comment if `beat`
};

// What the connections of a server share. Only the server's thread uses it.
struct Site {
  explicit Site(const HttpServer::Options& given) : options(given) {}

  const HttpServer::Options options;
  std::vector<std::weak_ptr<Connection>> streams;
  uint64_t version = 0;  // number of states published
  std::shared_ptr<const HttpServer::State> state;
};

std::string PathOf(const Request& request) {
  const std::string target(request.target());
  return target.substr(0, target.find('?'));
}

bool AsksForStream(const HttpServer::Options& options, const Request& request) {
  return !options.events.empty() && PathOf(request) == options.events;
}

// Whether the request comes from a page of this server, or from no page at all.
bool IsAllowed(const HttpServer::Options& options, const Request& request) {
  if (options.hosts.empty()) return true;
  if (request.count(http::field::host) != 1) return false;
  const std::string host = absl::AsciiStrToLower(std::string(request[http::field::host]));
  const std::string name = host.substr(0, host.find(':', host.rfind(']') == std::string::npos ? 0 : host.rfind(']')));
  if (std::find(options.hosts.begin(), options.hosts.end(), name) == options.hosts.end()) return false;
  const auto site = request["Sec-Fetch-Site"];
  return PathOf(request) == options.path || site.empty() || site == "same-origin" || site == "none";
}

http::status Judge(const Site& site, const Request& request) {
  if (!IsAllowed(site.options, request)) return http::status::forbidden;
  const bool stream = AsksForStream(site.options, request);
  if (!stream && PathOf(request) != site.options.path && !site.options.others) return http::status::not_found;
  if (request.method() != http::verb::get) return http::status::method_not_allowed;
  if (stream && site.streams.size() >= HttpServer::kMaxStreams) return http::status::service_unavailable;
  return http::status::ok;
}

// The answer to a request; of a stream only the header.
Response Answer(const Site& site, const Request& request) {
  Response answer(Judge(site, request), 11);
  for (const auto& [name, value] : site.options.headers) answer.set(name, value);
  answer.keep_alive(false);
  if (answer.result() == http::status::ok && AsksForStream(site.options, request)) {
    answer.set(http::field::content_type, "text/event-stream");
    return answer;
  }
  if (answer.result() == http::status::method_not_allowed) answer.set(http::field::allow, "GET");
  if (answer.result() == http::status::forbidden) {
    answer.set(http::field::content_type, "text/plain");
    answer.body() = "Refused: use the address under which this server was announced.\n";
  }
  if (answer.result() == http::status::ok) {
    std::optional<HttpServer::Answer> content;
    if (PathOf(request) == site.options.path) {
      content = {site.options.content_type, site.options.page()};
    } else {
      content = site.options.others(std::string(request.target()));
    }
    answer.result(content ? http::status::ok : http::status::not_found);
    if (content) answer.set(http::field::content_type, content->content_type);
    if (content) answer.body() = std::move(content->body);
  }
  answer.prepare_payload();
  return answer;
}

// One connection over a stream of TCP or TLS: handshake, request, answer, end; or, instead of the end, events. Its
// pending operations keep it alive. An operation that fails or exceeds the patience ends it.
template <class Stream>
class Conversation : public Connection, public std::enable_shared_from_this<Conversation<Stream>> {
 public:
  Conversation(Site* site, Stream stream, CertificateFiles::Context context)
      : site_(site), context_(std::move(context)), stream_(std::move(stream)) {
    parser_.header_limit(HttpServer::kMaxRequestBytes);
  }

  void Start() {
    beast::get_lowest_layer(stream_).expires_after(site_->options.patience);  // for all operations together
    if constexpr (kTls) {
      stream_.async_handshake(asio::ssl::stream_base::server, [self = this->shared_from_this()](error_code error) {
        if (!error) self->Read();
      });
    } else {
      Read();
    }
  }

  void Close() override { beast::get_lowest_layer(stream_).close(); }

  bool IsStream() const override { return serializer_.has_value(); }

  void Send(bool beat) override {
    if (sending_ || (sent_ == site_->version && !beat)) return;
    asio::const_buffer text(kComment, sizeof kComment - 1);
    if (sent_ < site_->version) {
      event_ = site_->state;
      const bool next = sent_ > 0 && sent_ + 1 == site_->version && !event_->change.empty();
      text = asio::buffer(next ? event_->change : event_->whole);
    }
    sending_ = true;
    beast::get_lowest_layer(stream_).expires_after(site_->options.patience);  // not for the pending read
    asio::async_write(stream_, text,
                      [self = this->shared_from_this(), version = site_->version](error_code error, size_t) {
                        self->sending_ = false;
                        self->sent_ = version;
                        self->event_ = nullptr;
                        if (error) return self->Close();
                        self->Send(false);
                      });
  }

 private:
  static constexpr bool kTls = !std::is_same_v<Stream, beast::tcp_stream>;
  static constexpr char kComment[] = ":\n\n";

  void Read() {
    http::async_read_header(stream_, buffer_, parser_, [self = this->shared_from_this()](error_code error, size_t) {
      if (!error) self->Write();
    });
  }

  void Write() {
    answer_ = Answer(*site_, parser_.get());
    beast::get_lowest_layer(stream_).expires_after(site_->options.patience);  // the client's time, not the answer's
    if (answer_.result() == http::status::ok && AsksForStream(site_->options, parser_.get())) return BeginStream();
    http::async_write(stream_, answer_, [self = this->shared_from_this()](error_code error, size_t) {
      if (!error) self->End();
    });
  }

  void BeginStream() {
    site_->streams.push_back(this->shared_from_this());
    sending_ = true;
    serializer_.emplace(answer_);
    http::async_write_header(stream_, *serializer_, [self = this->shared_from_this()](error_code error, size_t) {
      if (error) return self->Close();
      self->sending_ = false;
      beast::get_lowest_layer(self->stream_).expires_never();
      // A client has nothing more to say: whatever it sends, or its end, ends the stream.
      self->stream_.async_read_some(asio::buffer(self->said_), [self](error_code, size_t) { self->Close(); });
      self->Send(false);
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

  Site* const site_;
  const CertificateFiles::Context context_;  // null without TLS; outlives the stream
  Stream stream_;
  beast::flat_buffer buffer_{HttpServer::kMaxRequestBytes};
  http::request_parser<http::empty_body> parser_;
  Response answer_;
  std::optional<http::response_serializer<http::string_body>> serializer_;  // of a stream
  bool sending_ = false;
  uint64_t sent_ = 0;                               // version of the newest state that the client has
  std::shared_ptr<const HttpServer::State> event_;  // which is being sent
  char said_[1];
};

class BeastServer : public HttpServer {
 public:
  explicit BeastServer(const Options& options) : site_(options), acceptor_(io_), pause_(io_), beat_(io_) {}

  ~BeastServer() override {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Start() {
    if (!site_.options.tls.empty()) RETURN_IF_ERROR(files_.emplace(site_.options.tls).Read());
    const size_t colon = site_.options.listen.rfind(':');
    const std::string host = site_.options.listen.substr(0, colon);
    error_code error = colon == std::string::npos ? asio::error::invalid_argument
                                                  : Listen(host, site_.options.listen.substr(colon + 1));
    const tcp::endpoint bound = error ? tcp::endpoint() : acceptor_.local_endpoint(error);
    if (error)
      return absl::UnavailableError(absl::StrCat("cannot listen on ", site_.options.listen, ": ", error.message()));
    address_ = absl::StrCat(host, ":", bound.port());
    Accept();
    if (!site_.options.events.empty()) Beat();
    thread_ = std::thread([this] { io_.run(); });
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }

  void Publish(State state) override {
    asio::post(io_, [this, state = std::make_shared<const State>(std::move(state))] {
      site_.state = state;
      ++site_.version;
      SendToStreams(false);
    });
  }

 private:
  error_code Listen(const std::string& host, const std::string& port) {
    const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';  // an IPv6 address
    error_code error;
    const auto found = tcp::resolver(io_).resolve(bracketed ? host.substr(1, host.size() - 2) : host, port,
                                                  tcp::resolver::passive | tcp::resolver::numeric_service, error);
    if (error) return error;
    const tcp::endpoint endpoint = *found.begin();
    if (acceptor_.open(endpoint.protocol(), error)) return error;
    ::fcntl(acceptor_.native_handle(), F_SETFD, FD_CLOEXEC);  // no child keeps the port
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

  void Beat() {
    beat_.expires_after(site_.options.heartbeat);
    beat_.async_wait([this](error_code /*error*/) {
      SendToStreams(true);
      Beat();
    });
  }

  void SendToStreams(bool beat) {
    for (const std::weak_ptr<Connection>& one : site_.streams) {
      if (const std::shared_ptr<Connection> stream = one.lock()) stream->Send(beat);
    }
  }

  void Serve(tcp::socket socket) {
    ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
    beast::tcp_stream stream(std::move(socket));
    if (!files_.has_value()) return Begin(std::move(stream), nullptr);
    const CertificateFiles::Context context = files_->Current();
    Begin(beast::ssl_stream<beast::tcp_stream>(std::move(stream), *context), context);
  }

  template <class Stream>
  void Begin(Stream stream, const CertificateFiles::Context& context) {
    std::erase_if(site_.streams, [](const std::weak_ptr<Connection>& one) { return one.expired(); });
    std::erase_if(connections_, [](const std::weak_ptr<Connection>& one) {
      const std::shared_ptr<Connection> connection = one.lock();
      return connection == nullptr || connection->IsStream();
    });
    if (connections_.size() >= kMaxConnections) {
      if (const std::shared_ptr<Connection> oldest = connections_.front().lock()) oldest->Close();
      connections_.pop_front();
    }
    const auto connection = std::make_shared<Conversation<Stream>>(&site_, std::move(stream), context);
    connections_.push_back(connection);
    connection->Start();
  }

  Site site_;
  std::string address_;
  std::optional<CertificateFiles> files_;              // with TLS
  std::deque<std::weak_ptr<Connection>> connections_;  // without the streams; oldest first
  asio::io_context io_{1};  // destroyed before what its pending operations use: it ends the conversations
  tcp::acceptor acceptor_;
  asio::steady_timer pause_, beat_;
  std::thread thread_;
};

}  // namespace

const std::vector<std::string>& HttpServer::LoopbackNames() {
  static const auto* const kNames = new std::vector<std::string>{"127.0.0.1", "localhost", "[::1]"};
  return *kNames;
}

HttpServer::Options HttpServer::ForThisMachine(const std::string& listen, const std::string& policy) {
  Options options;
  options.listen = listen;
  options.path = "/";
  options.content_type = "text/html; charset=utf-8";
  options.hosts = LoopbackNames();
  options.headers = {{"Content-Security-Policy", policy},
                     {"Cross-Origin-Opener-Policy", "same-origin"},
                     {"Cross-Origin-Resource-Policy", "same-origin"},
                     {"Referrer-Policy", "no-referrer"},
                     {"X-Content-Type-Options", "nosniff"},
                     {"Cache-Control", "no-store"}};
  return options;
}

std::string HttpServer::FormatEvent(const std::string& name, const std::string& data) {
  return absl::StrCat("event: ", name, "\ndata: ", data, "\n\n");
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const Options& options) {
  auto server = std::make_unique<BeastServer>(options);
  RETURN_IF_ERROR(server->Start());
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
