#include "superstep/edge/http/request_rules.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cctype>
#include <charconv>
#include <sstream>

#include "superstep/base/error.h"
#include "superstep/base/file.h"

namespace superstep::edge {
namespace {

namespace http = boost::beast::http;
using http::field;

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return result;
}

Refusal malformed(std::string message) { return {RequestEnd::malformed, 400, std::move(message)}; }

std::optional<std::size_t> whole_number(std::string_view text) {
  std::size_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string machine_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? lower(name) : std::string();
}

// "*" is any, "*.example.org" any of one word before it, as in certificates.
bool is_meant(const std::string& name, const std::string& host) {
  if (name.starts_with("*.")) {
    const std::size_t dot = host.find('.');
    return dot != std::string::npos && dot > 0 && host.substr(dot) == name.substr(1);
  }
  return name == "*" || name == host;
}

std::set<std::string> read_own_names() {
  std::string hosts;
  try {
    hosts = read_text_file("/etc/hosts");
  } catch (const Error&) {  // a machine without: its one name is enough
  }
  return own_names(machine_name(), hosts);
}

bool is_own_host(const std::string& host, std::span<const std::string> hosts) {
  static const std::set<std::string> own = read_own_names();
  boost::system::error_code failed;
  boost::asio::ip::make_address(host, failed);
  if (!failed || own.contains(host)) return true;
  return std::ranges::any_of(hosts, [&](const std::string& name) { return is_meant(lower(name), host); });
}

}  // namespace

// What a name server says is not asked: in a strange network it says what its owner likes, and a page of his
// would reach this machine under a name of his. What stands in /etc/hosts the machine's own administrator
// wrote.
std::set<std::string> own_names(const std::string& machine, std::string_view hosts) {
  std::set<std::string> names{"localhost"};
  if (machine.empty()) return names;
  names.insert(lower(machine));
  names.insert(lower(machine.substr(0, machine.find('.'))));
  std::istringstream lines{std::string(hosts)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string address, name;
    words >> address;
    std::set<std::string> of_line;
    while (words >> name) of_line.insert(lower(name));
    if (of_line.contains(lower(machine))) names.merge(of_line);
  }
  return names;
}

std::string host_of(std::string_view authority) {
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    return end == std::string_view::npos ? std::string() : lower(authority.substr(1, end - 1));
  }
  return lower(authority.substr(0, authority.find(':')));
}

std::optional<Refusal> framing_fault(const RequestHeader& header, std::size_t most_body_bytes) {
  const std::size_t lengths = header.count(field::content_length);
  if (header.count(field::transfer_encoding) > 0) {
    const bool plain = header.count(field::transfer_encoding) == 1 &&
                       lower(view(header[field::transfer_encoding])) == "chunked" && lengths == 0 &&
                       header.version() >= 11;
    if (!plain) return malformed("Transfer-Encoding: 'chunked' once and no Content-Length, or none");
    return Refusal{RequestEnd::no_length, 411, "the request needs a Content-Length"};
  }
  if (lengths > 1) return malformed("the request has more than one Content-Length");
  const std::string_view digits = view(header[field::content_length]);
  if (lengths == 1 && (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos))
    return malformed("Content-Length is no number");
  const auto length = lengths == 1 ? whole_number(digits) : std::size_t{0};  // none: beyond all bounds
  if (!length || *length > most_body_bytes)
    return Refusal{RequestEnd::too_large, 413,
                   fmt::format("a body has at most {} bytes here", most_body_bytes)};
  const std::string encoding = lower(view(header[field::content_encoding]));
  if (!encoding.empty() && encoding != "identity")
    return Refusal{RequestEnd::encoded, 415,
                   "compressed bodies are not taken: send the tensors as they are, in binary"};
  return std::nullopt;
}

std::optional<Refusal> host_fault(const RequestHeader& header, std::span<const std::string> hosts) {
  const std::size_t count = header.count(field::host);
  if (count == 0 && header.version() < 11) return std::nullopt;
  if (count != 1) return malformed("the request needs one Host");
  const std::string host = host_of(view(header[field::host]));
  if (is_own_host(host, hosts)) return std::nullopt;
  return Refusal{
      RequestEnd::host, 421,
      "this server is not reached under the name in Host: 'superstep serve --host NAME' allows it"};
}

std::optional<Refusal> origin_fault(const RequestHeader& header, bool secure) {
  if (header.count(field::origin) == 0) return std::nullopt;
  const std::string own = (secure ? "https://" : "http://") + lower(view(header[field::host]));
  if (header.count(field::origin) == 1 && lower(view(header[field::origin])) == own) return std::nullopt;
  return Refusal{RequestEnd::origin, 403, "a page of another place asks nothing here"};
}

}  // namespace superstep::edge
