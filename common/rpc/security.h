// Authentication: mutual TLS with the installation's certificate authority and the run's token in every call; or none,
// which is the default and meant for loopback.
//
// A folder holds the four files that Kubernetes mounts from a secret: ca.crt, tls.crt, tls.key (PEM) and token (one
// line). Every certificate of a role carries the name kCertificateName, so that roles may move between hosts; its
// extended key usage says whether it is for servers, clients or both.
//
// The token is read once. The certificate files are read again at an interval: new connections then use the renewed
// files, and old connections stay open. While a file is missing, its last contents are used. While tls.crt and tls.key
// do not match, new connections fail. A thread of gRPC reads the files; it lives as long as a Security, channel or
// server that uses them.
#ifndef DATACOM_COMMON_RPC_SECURITY_H_
#define DATACOM_COMMON_RPC_SECURITY_H_

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
namespace experimental {
class CertificateProviderInterface;
}  // namespace experimental
}  // namespace grpc

namespace datacom {

inline constexpr char kCertificateName[] = "datacom";  // a DNS name among a role's alternative names
inline constexpr size_t kMinTokenLength = 16;
// Roles that read a renewed authority at different times refuse each other until both have read it, so the interval is
// well below the lease of 30 s, after which a session ends.
inline constexpr std::chrono::seconds kRenewalInterval{10};

struct Security {
  std::string authority, certificate, key;  // PEM
  std::string token;                        // the same for all roles of a run, secret
  // Follows the folder's certificate files. Null: the three values above are used and never renewed.
  std::shared_ptr<grpc::experimental::CertificateProviderInterface> files;
  bool enabled() const { return !authority.empty(); }
};

// An empty folder name means no security. INVALID_ARGUMENT, naming the file, when ReadCertificateFiles
// (common/rpc/certificates.h) refuses it, when users other than its owner can read or change tls.key or token (the
// group may read a file of root unless this process is root), or when the token is missing or too short. gRPC does not
// check the contents: it would refuse every connection. Later contents are not checked this way. `renewal`: how often
// the certificate files are read again, at least one second.
absl::StatusOr<Security> LoadSecurity(const std::string& folder, std::chrono::seconds renewal = kRenewalInterval);

// Plain text if security is not enabled. A connection without a role's certificate of the authority fails (the client
// gets UNAVAILABLE, whatever the reason); a call without the run's token is UNAUTHENTICATED.
std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(const Security& security);
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const Security& security);

// Whether only this machine can reach the address: 127.x.y.z, [::1], localhost.
bool IsLoopback(const std::string& address);

}  // namespace datacom

#endif  // DATACOM_COMMON_RPC_SECURITY_H_
// SPDX-License-Identifier: Apache-2.0
