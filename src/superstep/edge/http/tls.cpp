#include "superstep/edge/http/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <boost/asio/ssl/context.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"

namespace superstep::edge {
namespace {

namespace ssl = boost::asio::ssl;

[[noreturn]] void refuse(const std::filesystem::path& file, const char* what, const std::string& why) {
  ::ERR_clear_error();
  throw Error(
      ErrorCode::bad_file, fmt::format("{}: {}", what, why), file.string(),
      "give PEM files: --tls-cert with the certificate and those that signed it, --tls-key with its key");
}

template <class Use>
void use(const std::filesystem::path& file, const char* what, const Use& use_it) {
  boost::system::error_code failed;
  use_it(failed);
  if (failed) refuse(file, what, failed.message());
}

boost::asio::const_buffer buffer(const std::string& text) {
  return boost::asio::buffer(text.data(), text.size());
}

}  // namespace

TlsTexts read_tls(const TlsFiles& files) {
  if (files.certificate.empty() || files.key.empty())
    throw Error(ErrorCode::invalid_argument, "TLS needs a certificate and its key",
                files.certificate.empty() ? "--tls-cert" : "--tls-key", "give both --tls-cert and --tls-key");
  TlsTexts texts{.certificate = read_text_file(files.certificate), .key = read_text_file(files.key)};
  if (!files.client_ca.empty()) texts.client_ca = read_text_file(files.client_ca);
  return texts;
}

std::shared_ptr<ssl::context> tls_context(const TlsFiles& files) {
  const TlsTexts texts = read_tls(files);
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  context->set_options(ssl::context::default_workarounds | ssl::context::no_sslv2 | ssl::context::no_sslv3 |
                       ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1 | ssl::context::no_compression);
  ::SSL_CTX_set_options(context->native_handle(), SSL_OP_NO_RENEGOTIATION);
  use(files.certificate, "is no certificate",
      [&](auto& failed) { context->use_certificate_chain(buffer(texts.certificate), failed); });
  use(files.key, "is no key of this certificate",
      [&](auto& failed) { context->use_private_key(buffer(texts.key), ssl::context::pem, failed); });
  if (::SSL_CTX_check_private_key(context->native_handle()) != 1)
    refuse(files.key, "is no key of this certificate", files.certificate.string());
  if (!files.client_ca.empty()) {
    use(files.client_ca, "holds no certificate",
        [&](auto& failed) { context->add_certificate_authority(buffer(texts.client_ca), failed); });
    context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert);
  }
  static constexpr unsigned char session_name[] = "superstep";
  ::SSL_CTX_set_session_id_context(context->native_handle(), session_name, sizeof session_name - 1);
  return context;
}

}  // namespace superstep::edge
