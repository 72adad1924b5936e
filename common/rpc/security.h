// Authentication: mutual TLS with the installation's certificate authority and the run's token in every call; or none,
// which is the default and meant for loopback.
//
// A folder holds the four files that Kubernetes mounts from a secret: ca.crt, tls.crt, tls.key (PEM) and token (one
// line). Every certificate carries the name kCertificateName, so that roles may move between hosts; its extended key
// usage says whether it is for servers, clients or both. Immutable values, read once at start: a process reads renewed
// files when it is restarted.
#ifndef DATACOM_COMMON_RPC_SECURITY_H_
#define DATACOM_COMMON_RPC_SECURITY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"

namespace datacom {

inline constexpr char kCertificateName[] = "datacom";  // a DNS name among the certificate's alternative names
inline constexpr size_t kMinTokenLength = 16;

struct Security {
  std::string authority, certificate, key;  // PEM
  std::string token;                        // the same for all roles of a run, secret
  bool enabled() const { return !authority.empty(); }
};

// An empty folder name means no security. INVALID_ARGUMENT, naming the file, when it is missing or not PEM, when users
// other than its owner can read or change tls.key or token (the group may read a file of root unless this process is
// root), or when the token is too short.
absl::StatusOr<Security> LoadSecurity(const std::string& folder);

// Plain text if security is not enabled. A connection without a certificate of the authority fails (the client gets
// UNAVAILABLE, whatever the reason); a call without the run's token is UNAUTHENTICATED.
std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(const Security& security);
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const Security& security);

// Whether only this machine can reach the address: 127.x.y.z, [::1], localhost, unix sockets.
bool IsLoopback(const std::string& address);

}  // namespace datacom

#endif  // DATACOM_COMMON_RPC_SECURITY_H_
