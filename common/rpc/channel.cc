#include "common/rpc/channel.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "common/rpc/call_limit.h"
#include "common/rpc/listener.h"
#include "datacom/v1/health.pb.h"
#include "datacom/v1/learner.grpc.pb.h"
#include "datacom/v1/replay.grpc.pb.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/health_check_service_interface.h"

namespace datacom {
namespace {

// gRPC renders JSON for each look at its count of calls. So a server that begins fewer than kFewCalls between two looks
// waits longer for the next one.
constexpr std::chrono::milliseconds kQuietTick{10};
constexpr std::chrono::milliseconds kIdleTick{1000};  // without a connection no call can begin
constexpr uint64_t kFewCalls = 20;
constexpr int kConcurrentStreams = 1000;  // of a connection; a role has a handful open

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
void PrepareServers() {
  static const bool once = [] {
    // Debian builds Abseil without NDEBUG, so each lock inside gRPC would look for deadlocks in a graph of the whole
    // process. Our own locks are not of Abseil.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    return true;
  }();
  (void)once;
}

}  // namespace

// A listening gRPC server. gRPC refuses connections that it is given while it does not serve.
struct Server::Port {
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  CallCounts counts;
  std::unique_ptr<CallLimit> limit;
  bool flooded = false;
  bool connected = false;              // a connection has been taken
  uint64_t begun = 0;                  // calls at the last look
  std::unique_ptr<Listener> listener;  // stops before the others end

  // UNAVAILABLE naming the address.
  static absl::StatusOr<std::unique_ptr<Port>> Open(const std::string& address,
                                                    const std::vector<grpc::Service*>& services,
                                                    const Security& security, uint64_t calls_per_second) {
    PrepareServers();
    auto port = std::make_unique<Port>();
    ASSIGN_OR_RETURN(port->listener, Listener::Bind(address));
    grpc::ServerBuilder builder;
    port->acceptor = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, MakeServerCredentials(security));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kConcurrentStreams);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kKeepaliveMs / 4);
    builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
    builder.SetResourceQuota(grpc::ResourceQuota("server").Resize(kTransportBytes));
    builder.SetMaxSendMessageSize(kMaxMessageBytes);
    for (grpc::Service* service : services) builder.RegisterService(service);
    port->server = CallCounts::Of([&builder] { return builder.BuildAndStart(); }, &port->counts);
    if (port->server == nullptr) return absl::UnavailableError(absl::StrCat("gRPC cannot serve on ", address));
    port->limit = std::make_unique<CallLimit>(
        calls_per_second, &Clock::Real(),
        CallLimit::Connections{.peers = [listener = port->listener.get()] { return listener->Peers(); },
                               .counts = [port = port.get()] { return port->counts.Connections(); },
                               .reset = [](const std::vector<std::string>& peers) { ResetConnectionsFrom(peers); }});
    port->listener->Start(
        {.admits = [limit = port->limit.get()](const std::string& peer) { return limit->AdmitsConnection(peer); },
         .take =
             [port = port.get()](int fd) {
               grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
               connection.fd = fd;
               port->connected = true;
               port->acceptor->HandleNewConnection(&connection);
             },
         .tick = [port = port.get()] { return port->Tick(); }});
    return port;
  }

  std::chrono::milliseconds Tick() {
    if (!connected) return kIdleTick;
    const uint64_t calls = counts.Begun();
    limit->Tick(calls);
    const bool disgraced = limit->Disgraced();
    if (std::exchange(flooded, disgraced) && !disgraced) ::malloc_trim(0);  // gRPC's memory of the calls
    return calls - std::exchange(begun, calls) < kFewCalls ? kQuietTick : Listener::kSoon;
  }
};

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
  ASSIGN_OR_RETURN(server->port_, Port::Open(address, services, options.security, options.calls_per_second));
  server->address_ = server->port_->listener->address();
  if (!options.health_listen.empty()) {
    ASSIGN_OR_RETURN(server->health_, Port::Open(options.health_listen, {}, Security(), options.calls_per_second));
    server->health_address_ = server->health_->listener->address();
  }
  server->service_names_ = ServiceNames(services);
  server->SetServing(true);
  return server;
}

Server::~Server() { Shutdown(std::chrono::seconds(1)); }

void Server::SetServing(bool serving) {
  for (const Port* port : {port_.get(), health_.get()}) {
    grpc::HealthCheckServiceInterface* health = port == nullptr ? nullptr : port->server->GetHealthCheckService();
    if (health == nullptr) continue;
    health->SetServingStatus("", serving);
    for (const std::string& name : service_names_) health->SetServingStatus(name, serving);
  }
}

void Server::Shutdown(std::chrono::milliseconds grace) {
  if (port_ == nullptr) return;  // Start failed
  SetServing(false);
  for (Port* port : {port_.get(), health_.get()}) {
    if (port == nullptr) continue;
    port->listener.reset();
    port->server->Shutdown(DeadlineIn(grace));
    port->server->Wait();
    grace = std::chrono::milliseconds(0);  // health checks need none
  }
}

std::shared_ptr<grpc::Channel> Server::InProcessChannel() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  return port_->server->InProcessChannel(arguments);
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
