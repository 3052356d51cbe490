// How a client comes in at a server's doors: its token, whom it trusts, the certificate it shows.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <filesystem>
#include <memory>
#include <string>

namespace superstep::edge {

struct ClientAccess {
  std::string token;                       // empty: none
  std::filesystem::path ca;                // PEM: whom to trust; empty: whom this machine trusts
  std::filesystem::path certificate, key;  // PEM, both or none: shown to a server that asks for them
};

// The first token of a file as `superstep serve --token-file` reads it. Throws Error: invalid_argument where
// there is none.
std::string first_token(const std::filesystem::path& file);

struct AccessTexts {
  std::string ca, certificate, key;
};
// Throws Error: invalid_argument where one of certificate and key is missing, what reading a file throws.
AccessTexts read_access(const ClientAccess& access);

// TLS 1.2 and 1.3; the server's certificate is verified. Throws as read_access(), bad_file (no PEM).
std::shared_ptr<boost::asio::ssl::context> client_tls(const ClientAccess& access);

}  // namespace superstep::edge
