// The handshake of a client over TLS: with the server that was meant.
#pragma once

#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream_base.hpp>
#include <string>

#include "superstep/edge/load/target.h"

namespace superstep::edge {

// Of a stream that is connected. Throws boost::system::system_error where the certificate is not the host's,
// or nobody's that is trusted.
template <class Stream>
void begin_tls(Stream& stream, const LoadTarget& target) {
  const bool brackets = target.host.starts_with('[') && target.host.ends_with(']');
  const std::string host = brackets ? target.host.substr(1, target.host.size() - 2) : target.host;
  if (host.find_first_not_of("0123456789.:abcdefABCDEF") !=
      std::string::npos)  // an address is no name to ask
    ::SSL_set_tlsext_host_name(stream.native_handle(), host.c_str());
  stream.set_verify_callback(boost::asio::ssl::host_name_verification(host));
  stream.handshake(boost::asio::ssl::stream_base::client);
}

}  // namespace superstep::edge
