#include "superstep/edge/http/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

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

std::vector<std::string> names_of_certificate(const TlsFiles& files) {
  const TlsTexts texts = read_tls(files);
  const std::unique_ptr<BIO, decltype(&::BIO_free)> bytes(
      ::BIO_new_mem_buf(texts.certificate.data(), static_cast<int>(texts.certificate.size())), ::BIO_free);
  const std::unique_ptr<X509, decltype(&::X509_free)> certificate(
      ::PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr), ::X509_free);
  if (!certificate) refuse(files.certificate, "is no certificate", "nothing could be read");
  const std::unique_ptr<GENERAL_NAMES, decltype(&::GENERAL_NAMES_free)> found(
      static_cast<GENERAL_NAMES*>(
          ::X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)),
      ::GENERAL_NAMES_free);
  ::ERR_clear_error();
  std::vector<std::string> names;
  for (int i = 0; i < sk_GENERAL_NAME_num(found.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(found.get(), i);
    if (name->type != GEN_DNS) continue;
    names.emplace_back(reinterpret_cast<const char*>(::ASN1_STRING_get0_data(name->d.dNSName)),
                       static_cast<std::size_t>(::ASN1_STRING_length(name->d.dNSName)));
    if (names.back() == "*") names.pop_back();
  }
  return names;
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
