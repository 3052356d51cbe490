#include "superstep/edge/load/access.h"

#include <fmt/format.h>

#include <sstream>

#include "superstep/base/error.h"
#include "superstep/base/file.h"

namespace superstep::edge {
namespace {

namespace ssl = boost::asio::ssl;

template <class Use>
void use(const std::filesystem::path& file, const char* what, const Use& use_it) {
  boost::system::error_code failed;
  use_it(failed);
  if (failed) throw Error(ErrorCode::bad_file, fmt::format("{}: {}", what, failed.message()), file.string());
}

boost::asio::const_buffer buffer(const std::string& text) {
  return boost::asio::buffer(text.data(), text.size());
}

}  // namespace

std::string first_token(const std::filesystem::path& file) {
  std::istringstream lines(read_text_file(file));
  for (std::string line, word; std::getline(lines, line);)
    if (std::istringstream(line) >> word && !word.starts_with('#')) return word;
  throw Error(ErrorCode::invalid_argument, "holds no token", file.string());
}

AccessTexts read_access(const ClientAccess& access) {
  if (access.certificate.empty() != access.key.empty())
    throw Error(ErrorCode::invalid_argument, "a certificate and its key are shown together",
                access.certificate.empty() ? "--tls-cert" : "--tls-key",
                "give both --tls-cert and --tls-key");
  const auto text_of = [](const std::filesystem::path& file) {
    return file.empty() ? std::string() : read_text_file(file);
  };
  return {.ca = text_of(access.ca), .certificate = text_of(access.certificate), .key = text_of(access.key)};
}

std::shared_ptr<ssl::context> client_tls(const ClientAccess& access) {
  const AccessTexts texts = read_access(access);
  auto context = std::make_shared<ssl::context>(ssl::context::tls_client);
  context->set_options(ssl::context::default_workarounds | ssl::context::no_sslv2 | ssl::context::no_sslv3 |
                       ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1);
  context->set_verify_mode(ssl::verify_peer);
  if (access.ca.empty())
    context->set_default_verify_paths();
  else
    use(access.ca, "holds no certificate",
        [&](auto& failed) { context->add_certificate_authority(buffer(texts.ca), failed); });
  if (access.key.empty()) return context;
  use(access.certificate, "is no certificate",
      [&](auto& failed) { context->use_certificate_chain(buffer(texts.certificate), failed); });
  use(access.key, "is no key of this certificate",
      [&](auto& failed) { context->use_private_key(buffer(texts.key), ssl::context::pem, failed); });
  return context;
}

}  // namespace superstep::edge
