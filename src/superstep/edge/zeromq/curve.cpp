#include "superstep/edge/zeromq/curve.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/edge/zeromq/zeromq.h"

namespace superstep::edge {
namespace {

namespace fs = std::filesystem;

using Key = std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)>;
using Bytes = std::unique_ptr<BIO, decltype(&::BIO_free)>;

constexpr std::size_t z85_letters = 40;  // of a key
constexpr std::size_t most_clients = 10'000;

constexpr const char* how_to_make =
    "openssl genpkey -algorithm X25519 -out key.pem; openssl pkey -in key.pem -pubout -out public.pem";

std::string_view trimmed(std::string_view text) {
  constexpr const char* blank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(blank);
  return begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

[[noreturn]] void refuse(const fs::path& file, const char* what) {
  throw Error(ErrorCode::bad_file, what, file.string(), how_to_make);
}

std::optional<std::string> from_z85(const std::string& text) {
  std::string key(curve_key_bytes, '\0');
  if (text.size() != z85_letters ||
      !zmq_z85_decode(reinterpret_cast<std::uint8_t*>(key.data()), text.c_str()))
    return std::nullopt;
  return key;
}

Bytes bytes_of(const std::string& text) {
  return {::BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), ::BIO_free};
}

// The raw bytes of one half of a pair; nothing where it is no pair of X25519.
std::optional<std::string> half_of(EVP_PKEY* pair,
                                   int (*get)(const EVP_PKEY*, unsigned char*, std::size_t*)) {
  std::string key(curve_key_bytes, '\0');
  std::size_t size = key.size();
  if (!pair || ::EVP_PKEY_id(pair) != EVP_PKEY_X25519 ||
      get(pair, reinterpret_cast<unsigned char*>(key.data()), &size) != 1 || size != curve_key_bytes)
    return std::nullopt;
  return key;
}

// What stands behind `name = "..."` in a certificate of ZeroMQ's tools.
std::optional<std::string> entry_of(const std::string& text, std::string_view name) {
  for (const std::string& line : split(text, '\n')) {
    const std::string_view found = trimmed(line);
    if (!found.starts_with(name)) continue;
    const std::size_t begin = found.find('"'), end = found.rfind('"');
    const std::string_view between = found.substr(name.size(), begin - std::min(begin, name.size()));
    if (begin == end || begin == std::string_view::npos || trimmed(between) != "=") continue;
    return std::string(found.substr(begin + 1, end - begin - 1));
  }
  return std::nullopt;
}

std::string secret_key_of(const fs::path& file) {
  const std::string text = read_text_file(file);
  std::optional<std::string> key;
  if (text.find("-----BEGIN ") != std::string::npos) {
    const Bytes bytes = bytes_of(text);
    const Key pair(::PEM_read_bio_PrivateKey(bytes.get(), nullptr, nullptr, const_cast<char*>("")),
                   ::EVP_PKEY_free);
    key = half_of(pair.get(), ::EVP_PKEY_get_raw_private_key);
  } else {
    key = from_z85(entry_of(text, "secret-key").value_or(std::string(trimmed(text))));
  }
  ::ERR_clear_error();
  if (!key) refuse(file, "is no secret key of X25519");
  return *key;
}

std::string public_key_of(std::string_view secret) {
  const Key pair(
      ::EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr,
                                     reinterpret_cast<const unsigned char*>(secret.data()), secret.size()),
      ::EVP_PKEY_free);
  return half_of(pair.get(), ::EVP_PKEY_get_raw_public_key).value();
}

void add_pem(const std::string& text, const fs::path& file, CurveClients& keys) {
  const Bytes bytes = bytes_of(text);
  for (int number = 1;; ++number) {
    const Key one(::PEM_read_bio_PUBKEY(bytes.get(), nullptr, nullptr, nullptr), ::EVP_PKEY_free);
    ::ERR_clear_error();
    if (!one && number > 1) return;
    const auto key = half_of(one.get(), ::EVP_PKEY_get_raw_public_key);
    if (!key) refuse(file, "is no public key of X25519");
    keys[*key] = fmt::format("{} {}", file.filename().string(), number);
  }
}

// Z85 has '#' among its letters: what is no key, and begins with one, is a comment.
void add_lines(const std::string& text, const fs::path& file, CurveClients& keys) {
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    const std::string_view found = trimmed(line);
    const std::size_t end = std::min(found.find_first_of(" \t"), found.size());
    const auto key = from_z85(std::string(found.substr(0, end)));
    if (!key && (found.empty() || found.starts_with('#'))) continue;
    if (!key)
      throw Error(ErrorCode::bad_file, "is no key", fmt::format("{}: line {}", file.string(), number),
                  "write KEY, or KEY NAME, with the 40 letters that ZeroMQ's tools print");
    const std::string_view name = trimmed(found.substr(end));
    keys[*key] = name.empty() ? fmt::format("line {}", number) : std::string(name);
    if (keys.size() > most_clients) refuse(file, "holds more than 10,000 keys");
  }
}

CurveClients public_keys_of(const fs::path& file) {
  const std::string text = read_text_file(file);
  CurveClients keys;
  if (text.find("-----BEGIN ") != std::string::npos) {
    add_pem(text, file, keys);
  } else if (const auto entry = entry_of(text, "public-key")) {
    const auto key = from_z85(*entry);
    if (!key) refuse(file, "is no public key");
    keys[*key] = file.stem().string();
  } else {
    add_lines(text, file, keys);
  }
  if (keys.empty()) refuse(file, "holds no key");
  return keys;
}

}  // namespace

std::string z85_of(std::string_view key) {
  std::string text(z85_letters + 1, '\0');
  zmq_z85_encode(text.data(), reinterpret_cast<const std::uint8_t*>(key.data()), key.size());
  text.resize(z85_letters);
  return text;
}

std::shared_ptr<Curve> read_curve(const CurveFiles& files) {
  if (files.key.empty())
    throw Error(ErrorCode::invalid_argument, "an end of an encrypted stream needs a key of its own",
                "--curve-key", how_to_make);
  if (zmq_has("curve") != 1)
    throw Error(ErrorCode::unsupported, "ZeroMQ's library was built without CURVE", "--curve-key");
  auto curve = std::make_shared<Curve>();
  curve->secret_key = secret_key_of(files.key);
  curve->public_key = public_key_of(curve->secret_key);
  if (!files.server.empty()) {
    const CurveClients keys = public_keys_of(files.server);
    if (keys.size() != 1) refuse(files.server, "holds several keys, and one is connected to");
    curve->server_key = keys.begin()->first;
  }
  if (!files.clients.empty()) curve->let_in(read_curve_clients(files.clients));
  return curve;
}

CurveClients read_curve_clients(const std::vector<fs::path>& files) {
  CurveClients clients;
  for (const fs::path& file : files) clients.merge(public_keys_of(file));
  return clients;
}

void Curve::let_in(CurveClients clients) {
  auto renewed = std::make_shared<const CurveClients>(std::move(clients));
  const std::scoped_lock lock(mutex_);
  clients_ = std::move(renewed);
}

std::shared_ptr<const CurveClients> Curve::clients() const {
  const std::scoped_lock lock(mutex_);
  return clients_;
}

}  // namespace superstep::edge
