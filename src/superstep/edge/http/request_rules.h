// What a request's header may say, before anything of its body is read: RFC 9112's rules of where it ends,
// and for which server and by which page it is.
#pragma once

#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "superstep/edge/door/account.h"

namespace superstep::edge {

struct Refusal {
  RequestEnd end = RequestEnd::malformed;
  int status = 400;
  std::string message;
};

using RequestHeader = boost::beast::http::header<true, boost::beast::http::fields>;

// Nobody on the way may see another end of the request than this server: what says it in two ways, or in one
// that is not known, is refused and its connection ended (RFC 9112, 6.1 and 6.3).
std::optional<Refusal> framing_fault(const RequestHeader& header, std::size_t most_body_bytes);

// A name that somebody else's pages resolve to this machine is none of its own (DNS rebinding): `hosts` are
// names beside addresses and own_names(); "*": any, "*.example.org": any of there.
std::optional<Refusal> host_fault(const RequestHeader& header, std::span<const std::string> hosts);

// The names under which a machine of that name is reached without asking a name server: "localhost", its name
// with and without its domain, and those that stand beside it in a file as /etc/hosts. In small letters.
std::set<std::string> own_names(const std::string& machine, std::string_view hosts);

// A page may ask the server that it came from; `secure`: that is one with https.
std::optional<Refusal> origin_fault(const RequestHeader& header, bool secure);

// The host of "HOST:PORT", "[::1]:8000", in small letters and without brackets.
std::string host_of(std::string_view authority);

}  // namespace superstep::edge
