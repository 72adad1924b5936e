// Clients of the HTTP server's tests: a raw TCP connection, and whole requests in plain text and over TLS. They
// wait for data as long as tests are patient.
#ifndef DATACOM_TESTS_COMMON_METRICS_HTTP_CLIENT_H_
#define DATACOM_TESTS_COMMON_METRICS_HTTP_CLIENT_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tests/testing/patience.h"

namespace datacom::testing {

class Connection {
 public:
  explicit Connection(const std::string& address) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const size_t colon = address.rfind(':');
    sockaddr_in peer = {};
    peer.sin_family = AF_INET;
    peer.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
    ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &peer.sin_addr);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&peer), sizeof peer), 0) << address;
    SetPatience(kPatience);
  }
  ~Connection() { ::close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  int fd() const { return fd_; }

  void SetPatience(std::chrono::milliseconds patience) {
    const timeval time = {patience.count() / 1000, patience.count() % 1000 * 1000};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  }
  bool Send(const std::string& text) {
    return ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  std::string Receive() {  // until the server closes the connection
    std::string answer;
    char buffer[65536];
    for (ssize_t count; (count = ::recv(fd_, buffer, sizeof buffer, 0)) > 0;)
      answer.append(buffer, static_cast<size_t>(count));
    return answer;
  }
  // True if the server has closed the connection; waits for it as long as SetPatience says. Drops what the server sent.
  bool IsClosed() {
    char buffer[65536];
    ssize_t count = 0;
    do count = ::recv(fd_, buffer, sizeof buffer, 0);
    while (count > 0);
    return count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  }

 private:
  const int fd_;
};

inline std::string Request(const std::string& path, const std::string& method = "GET") {
  return method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
}

// The answer to a request.
inline std::string Get(const std::string& address, const std::string& path = "/metrics",
                       const std::string& method = "GET") {
  Connection connection(address);
  EXPECT_TRUE(connection.Send(Request(path, method)));
  return connection.Receive();
}

// The answer to GET /metrics over TLS; empty if the handshake or the server's check of the client fails. `folder` has
// the client's certificate and the authority that the server's one is checked against; empty: neither. *fingerprint
// receives the fingerprint of the server's certificate. Reads to the end, or until the answer has `until`.
inline std::string GetOverTls(const std::string& address, const std::string& folder, int version = TLS1_3_VERSION,
                              std::string* fingerprint = nullptr, const std::string& until = "") {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  SSL_CTX_set_cipher_list(context.get(), "DEFAULT:@SECLEVEL=0");  // allows the old versions
  SSL_CTX_set_min_proto_version(context.get(), version);
  SSL_CTX_set_max_proto_version(context.get(), version);
  if (!folder.empty()) {
    EXPECT_EQ(SSL_CTX_use_certificate_chain_file(context.get(), (folder + "/tls.crt").c_str()), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context.get(), (folder + "/tls.key").c_str(), SSL_FILETYPE_PEM), 1);
    EXPECT_EQ(SSL_CTX_load_verify_locations(context.get(), (folder + "/ca.crt").c_str(), nullptr), 1);
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  }
  Connection connection(address);
  const std::unique_ptr<SSL, decltype(&SSL_free)> tls(SSL_new(context.get()), SSL_free);
  SSL_set1_host(tls.get(), folder.empty() ? nullptr : "datacom");
  SSL_set_fd(tls.get(), connection.fd());
  if (SSL_connect(tls.get()) != 1) return "";
  if (fingerprint != nullptr) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    X509_digest(SSL_get0_peer_certificate(tls.get()), EVP_sha256(), digest, &size);
    fingerprint->assign(digest, digest + size);
  }
  const std::string request = Request("/metrics");
  SSL_write(tls.get(), request.data(), static_cast<int>(request.size()));
  std::string answer;
  char buffer[4096];
  for (int count; (count = SSL_read(tls.get(), buffer, sizeof buffer)) > 0;) {
    answer.append(buffer, static_cast<size_t>(count));
    if (!until.empty() && answer.find(until) != std::string::npos) break;
  }
  return answer;
}

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_COMMON_METRICS_HTTP_CLIENT_H_
// SPDX-License-Identifier: Apache-2.0
