// Certificates and keys of a server, out of files.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace boost::asio::ssl {
class context;  // NOLINT(readability-identifier-naming): the library's own
}

namespace superstep::edge {

// PEM. Both or none; `client_ca`: only who shows a certificate that one of these signed may connect.
struct TlsFiles {
  std::filesystem::path certificate, key, client_ca;
  explicit operator bool() const { return !certificate.empty() || !key.empty() || !client_ca.empty(); }
};

struct TlsTexts {
  std::string certificate, key, client_ca;
};

// Throws Error: invalid_argument where one of the two is missing, bad_file where they are none or do not
// belong together, what reading a file throws.
TlsTexts read_tls(const TlsFiles& files);

// The names of a server that its certificate is for: under another one no client that looks speaks with it.
// Throws as read_tls().
std::vector<std::string> names_of_certificate(const TlsFiles& files);

// TLS 1.2 and 1.3. Throws as read_tls().
std::shared_ptr<boost::asio::ssl::context> tls_context(const TlsFiles& files);

}  // namespace superstep::edge
