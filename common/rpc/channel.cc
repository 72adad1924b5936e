#include "common/rpc/channel.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/base/log.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "datacom/v1/health.pb.h"
#include "datacom/v1/learner.grpc.pb.h"
#include "datacom/v1/replay.grpc.pb.h"
#include "grpc/support/log.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/support/server_interceptor.h"

namespace datacom {
namespace {

// The run's peers begin a call for a stream, a lease, a report of an evaluation, or to read back rows of violations.
constexpr uint32_t kCallsPerSecond = 1000;
constexpr int kConcurrentStreams = 1000;  // of a connection; a role has a handful open

// The peer of a socket as gRPC names it, with plain brackets; empty for other sockets and files.
std::string PeerOf(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &four.sin_addr, text, sizeof text);
    return absl::StrCat("ipv4:", text, ":", ntohs(four.sin_port));
  }
  if (address.ss_family != AF_INET6) return "";
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
    ::inet_ntop(AF_INET, six.sin6_addr.s6_addr + 12, text, sizeof text);
    return absl::StrCat("ipv4:", text, ":", ntohs(six.sin6_port));
  }
  ::inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text);
  return absl::StrCat("ipv6:[", text, "]:", ntohs(six.sin6_port));
}

// gRPC asks it at the beginning of every call. It adds nothing to the calls themselves.
class Limiter : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Limiter(const Clock* clock) : limit_(kCallsPerSecond, clock) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* call) override {
    const std::string peer = call->server_context()->peer();
    if (limit_.Reaches(peer) && CloseConnectionsFrom(peer) > 0) {
      spdlog::warn("closed the connection from {}: more than {} calls began on it within a second", peer,
                   kCallsPerSecond);
    }
    return nullptr;
  }

 private:
  CallLimit limit_;
};

}  // namespace

bool CallLimit::Reaches(const std::string& peer) {
  const Clock::Time now = clock_->Now();
  MutexLock lock(&mutex_);
  if (now - second_ >= std::chrono::seconds(1)) {
    second_ = now;
    calls_.clear();
  }
  return ++calls_[peer] % limit_ == 0;
}

int CloseConnectionsFrom(const std::string& peer) {
  const std::string wanted = absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}});
  int closed = 0;
  if (wanted.empty()) return closed;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    int fd = -1;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &fd) || PeerOf(fd) != wanted) continue;
    // gRPC owns the descriptor. It reads the end of the connection and closes it.
    closed += ::shutdown(fd, SHUT_RDWR) == 0 ? 1 : 0;
  }
  return closed;
}

void LimitCalls(grpc::ServerBuilder* builder, const Clock* clock) {
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kConcurrentStreams);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> limiters;
  limiters.push_back(std::make_unique<Limiter>(clock));
  builder->experimental().SetInterceptorCreators(std::move(limiters));
}

namespace {

// Limit for the messages in flight of all peers of a server together. Beyond it gRPC resets streams, including the
// run's own: the hostile peers of tests/chaos/hostile_run_test.py cause that with 16 MiB, and did not with 32 MiB. With
// 128 MiB they raised the replay's memory by 62 MB.
constexpr size_t kTransportBytes = 64 << 20;
constexpr int kKeepaliveMs = 20000;
constexpr int kKeepaliveTimeoutMs = 10000;
constexpr int kFirstBackoffMs = 50;
constexpr int kMaxBackoffMs = 2000;
constexpr double kBackoffJitter = 0.2;
// Largest request: a chunk of 1 MiB and what surrounds it. Replies may be larger.
constexpr int kMaxRequestBytes = (1 << 20) + (64 << 10);

// Full names of this project's services among `services` (grpc::Service does not expose its name).
std::vector<std::string> ServiceNames(const std::vector<grpc::Service*>& services) {
  std::vector<std::string> names;
  for (grpc::Service* service : services) {
    if (dynamic_cast<v1::Replay::Service*>(service) != nullptr) names.emplace_back(v1::Replay::service_full_name());
    if (dynamic_cast<v1::Learner::Service*>(service) != nullptr) names.emplace_back(v1::Learner::service_full_name());
  }
  return names;
}

// Process-wide; must run before the first server is built.
void EnableHealthAndReflection() {
  static const bool once = [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    return true;
  }();
  (void)once;
}

// Silences gRPC's log while it lives: gRPC reports a port that it cannot bind in a page of nested errors.
struct Silence {
  Silence() {
    gpr_set_log_function([](gpr_log_func_args*) {});
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
  ~Silence() { gpr_set_log_function(nullptr); }  // restores gRPC's own
};

// UNAVAILABLE naming the address. *bound: host:port.
absl::StatusOr<std::unique_ptr<grpc::Server>> Listen(const std::string& address,
                                                     const std::vector<grpc::Service*>& services,
                                                     const Security& security, const Clock* clock, std::string* bound) {
  EnableHealthAndReflection();
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, MakeServerCredentials(security), &port);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT,
                             0);  // otherwise a second server could share a port in use
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kKeepaliveMs / 4);
  LimitCalls(&builder, clock);
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder.SetResourceQuota(grpc::ResourceQuota("server").Resize(kTransportBytes));
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  for (grpc::Service* service : services) builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server;
  {
    const Silence silence;
    server = builder.BuildAndStart();
  }
  if (server == nullptr || port == 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address, ": the port is in use or the address is not one of this machine"));
  }
  const bool has_port = address.rfind("unix:", 0) != 0 && address.rfind(':') != std::string::npos;
  *bound = has_port ? absl::StrCat(address.substr(0, address.rfind(':')), ":", port) : address;
  return server;
}

void SetServingOf(grpc::Server* server, const std::vector<std::string>& services, bool serving) {
  grpc::HealthCheckServiceInterface* health = server == nullptr ? nullptr : server->GetHealthCheckService();
  if (health == nullptr) return;
  health->SetServingStatus("", serving);
  for (const std::string& name : services) health->SetServingStatus(name, serving);
}

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, const Security& security) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstBackoffMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kMaxBackoffMs);  // also limits a connection attempt
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxBackoffMs);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY,
                   0);  // roles talk within one cluster; the environment's proxy is for other traffic
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  if (security.enabled()) arguments.SetSslTargetNameOverride(kCertificateName);
  return grpc::CreateCustomChannel(address, MakeChannelCredentials(security), arguments);
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  // A server short of memory resets streams. Only its message tells that from what our own services refuse.
  const std::string& message = status.error_message();
  if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED && absl::StartsWith(message, "Received RST_STREAM")) {
    return absl::UnavailableError(message);
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());  // equal numbers
}

absl::Status FromStreamEnd(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::CANCELLED ? absl::UnavailableError("the connection broke")
                                                            : FromGrpc(status);
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

bool IsTransient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsAborted(status);
}

std::chrono::milliseconds Backoff::Next() {
  const int doublings = std::min(attempt_, 10);
  const double plain = std::min(kMaxBackoffMs, kFirstBackoffMs << doublings);
  RandomStream stream(StreamKey("rpc.backoff", {seed_, static_cast<uint64_t>(attempt_)}));
  if (attempt_ < (1 << 30)) ++attempt_;
  return std::chrono::milliseconds(
      static_cast<int64_t>(plain * stream.Uniform(1 - kBackoffJitter, 1 + kBackoffJitter)));
}

v1::Hello MakeHello(const std::string& run_id, uint64_t schema_fingerprint) {
  v1::Hello hello;
  hello.set_run_id(run_id);
  hello.set_protocol(kProtocolVersion);
  hello.set_build(BuildName());
  hello.set_schema_fingerprint(schema_fingerprint);
  return hello;
}

absl::Status CheckHello(const v1::Hello& hello, const std::string& run_id, uint64_t schema_fingerprint) {
  if (hello.protocol() != kProtocolVersion) {
    return absl::FailedPreconditionError(absl::StrCat("handshake: peer (build \"", hello.build(),
                                                      "\") speaks protocol ", hello.protocol(), ", this build (",
                                                      BuildName(), ") speaks ", kProtocolVersion));
  }
  if (hello.run_id() != run_id) {
    return absl::FailedPreconditionError(
        absl::StrCat("handshake: peer belongs to run \"", hello.run_id(), "\", this is run \"", run_id, "\""));
  }
  if (schema_fingerprint != 0 && hello.schema_fingerprint() != schema_fingerprint) {
    return absl::FailedPreconditionError(absl::StrFormat("handshake: peer's row schema is %016x, this run's is %016x",
                                                         hello.schema_fingerprint(), schema_fingerprint));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const std::string& address,
                                                      const std::vector<grpc::Service*>& services,
                                                      const ServerOptions& options) {
  if (!services.empty() && !options.security.enabled() && !IsLoopback(address)) {
    spdlog::warn("serving on {} in plain text: anyone who reaches it can act, draw and read policies; use --tls",
                 address);
  }
  std::unique_ptr<Server> server(new Server);
  ASSIGN_OR_RETURN(server->server_, Listen(address, services, options.security, options.clock, &server->address_));
  if (!options.health_listen.empty()) {
    ASSIGN_OR_RETURN(server->health_,
                     Listen(options.health_listen, {}, Security(), options.clock, &server->health_address_));
  }
  server->service_names_ = ServiceNames(services);
  server->SetServing(true);
  return server;
}

Server::~Server() { Shutdown(std::chrono::seconds(1)); }

void Server::SetServing(bool serving) {
  SetServingOf(server_.get(), service_names_, serving);
  SetServingOf(health_.get(), service_names_, serving);
}

void Server::Shutdown(std::chrono::milliseconds grace) {
  if (server_ == nullptr) return;  // Start failed
  SetServing(false);
  server_->Shutdown(DeadlineIn(grace));
  server_->Wait();
  if (health_ == nullptr) return;
  health_->Shutdown(DeadlineIn(std::chrono::milliseconds(0)));  // health checks need no grace
  health_->Wait();
}

std::shared_ptr<grpc::Channel> Server::InProcessChannel() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  return server_->InProcessChannel(arguments);
}

absl::Status CheckHealth(const std::string& address, std::chrono::milliseconds deadline, const Security& security) {
  grpc::TemplatedGenericStub<v1::HealthCheckRequest, v1::HealthCheckResponse> stub(MakeChannel(address, security));
  grpc::ClientContext context;
  context.set_deadline(DeadlineIn(deadline));
  grpc::CompletionQueue queue;
  auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", v1::HealthCheckRequest(), &queue);
  call->StartCall();
  v1::HealthCheckResponse response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);  // returns by the deadline
  if (!status.ok()) {
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                        absl::StrCat("health of ", address, ": ", status.error_message()));
  }
  if (response.status() != v1::HealthCheckResponse::SERVING)
    return absl::UnavailableError(absl::StrCat("health of ", address, ": not serving"));
  return absl::OkStatus();
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
