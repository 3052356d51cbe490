#include "superstep/edge/model/signature.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <memory>
#include <set>
#include <vector>

#include "superstep/base/encoding/sha256.h"
#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/printable.h"
#include "superstep/base/system/mapped_file.h"
#include "superstep/base/text.h"

namespace superstep::edge {
namespace {

namespace fs = std::filesystem;

using Key = std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)>;

Key read_key(const fs::path& file) {
  const std::string text = read_text_file(file);
  const std::unique_ptr<BIO, decltype(&::BIO_free)> bytes(
      ::BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), ::BIO_free);
  Key key(::PEM_read_bio_PUBKEY(bytes.get(), nullptr, nullptr, nullptr), ::EVP_PKEY_free);
  ::ERR_clear_error();
  if (!key || ::EVP_PKEY_id(key.get()) != EVP_PKEY_ED25519)
    throw Error(
        ErrorCode::bad_file, "is no public key of Ed25519", file.string(),
        "openssl genpkey -algorithm ed25519 -out key.pem; openssl pkey -in key.pem -pubout -out public.pem");
  return key;
}

bool verifies(EVP_PKEY* key, std::string_view text, std::string_view signature) {
  const auto bytes = [](std::string_view of) { return reinterpret_cast<const unsigned char*>(of.data()); };
  const std::unique_ptr<EVP_MD_CTX, decltype(&::EVP_MD_CTX_free)> context(::EVP_MD_CTX_new(),
                                                                          ::EVP_MD_CTX_free);
  const bool good =
      ::EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key) == 1 &&
      ::EVP_DigestVerify(context.get(), bytes(signature), signature.size(), bytes(text), text.size()) == 1;
  ::ERR_clear_error();
  return good;
}

// A list that names what counts, and whose every file is there as it says.
void require_files(const fs::path& list, const std::string& text, std::set<std::string> wanted) {
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) continue;
    constexpr std::size_t figures = 64;
    const std::string name = line.size() > figures + 2 ? line.substr(figures + 2) : "";
    if (name.empty() || fs::path(name).is_absolute() || name.find("..") != std::string::npos)
      throw Error(ErrorCode::bad_file, "holds a line that is none of sha256sum's", list.string());
    Sha256 hash;
    hash.add(MappedFile(list.parent_path() / name).bytes());
    if (hash.hexadecimal() != line.substr(0, figures))
      throw Error(ErrorCode::bad_file, "is not what was signed: it has another SHA-256",
                  (list.parent_path() / name).string());
    wanted.erase(name);
  }
  if (!wanted.empty())
    throw Error(ErrorCode::bad_file, fmt::format("says nothing of {}", *wanted.begin()), list.string(),
                "sign a list of all files that are served");
}

}  // namespace

void require_signed(const std::string& what, const fs::path& key_file) {
  const Key key = read_key(key_file);
  const bool is_folder = fs::is_directory(what);
  const fs::path list = is_folder ? fs::path(what) / "SHA256SUMS" : fs::path(what + ".sha256");
  const fs::path signature = list.string() + ".sig";
  if (!fs::exists(list) || !fs::exists(signature))
    throw Error(
        ErrorCode::bad_file, fmt::format("is not signed: there is no {} with a signature", list.string()),
        what, "sha256sum FILE... > LIST; openssl pkeyutl -sign -rawin -inkey key.pem -in LIST -out LIST.sig");
  const std::string text = read_text_file(list);
  if (!verifies(key.get(), text, read_text_file(signature)))
    throw Error(ErrorCode::bad_file, fmt::format("is no signature of the list by {}", key_file.string()),
                signature.string());
  const std::set<std::string> of_folder{"config.json", "best.safetensors"};
  require_files(list, text, is_folder ? of_folder : std::set{fs::path(what).filename().string()});
}

}  // namespace superstep::edge
