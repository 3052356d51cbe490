// CURVE: how ZeroMQ encrypts a stream and knows its two ends, by keys of X25519 out of files.
//
// The end that listens has a key that the other end knows, and knows the keys of those who may come in.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace superstep::edge {

struct CurveFiles {
  std::filesystem::path key;                   // our own, secret
  std::filesystem::path server;                // the public one of the end that is connected to
  std::vector<std::filesystem::path> clients;  // the public ones of those who may connect to us
  bool given() const { return !key.empty() || !server.empty() || !clients.empty(); }
};

inline constexpr std::size_t curve_key_bytes = 32;

using CurveClients = std::map<std::string, std::string>;  // names by key

struct Curve {
  std::string secret_key, public_key;  // bytes
  std::string server_key;              // of the other end; empty: none was given
  // Told of connections that did not come about, of the first ones, from a thread of the socket's own.
  std::function<void(const std::string& what)> on_refusal{};

  // Who may connect, from now on. Called from any thread.
  void let_in(CurveClients clients);
  // Null: none were given.
  std::shared_ptr<const CurveClients> clients() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const CurveClients> clients_;
};

using CurvePointer = std::shared_ptr<const Curve>;  // null: a stream in the clear

// A key file is PEM (openssl genpkey -algorithm X25519, openssl pkey -pubout), a certificate of ZeroMQ's
// tools (public-key = "...", secret-key = "..."), or the key as Z85; of clients, lines "KEY [NAME]". Throws
// Error: invalid_argument (no key of our own), bad_file (no key), unsupported (ZeroMQ was built without
// CURVE), what reading a file throws.
std::shared_ptr<Curve> read_curve(const CurveFiles& files);
CurveClients read_curve_clients(const std::vector<std::filesystem::path>& files);

// As ZeroMQ's tools write a key: 40 letters.
std::string z85_of(std::string_view key);

}  // namespace superstep::edge
