#include "superstep/file/form.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "superstep/base/system/regular_file.h"

namespace superstep::data {
namespace {

constexpr std::size_t looked_at = 4096;  // bytes
constexpr std::string_view hdf5_mark = "\x89HDF\r\n\x1a\n";

std::string part_of(std::ifstream& stream, std::size_t at, std::size_t count) {
  std::string bytes(count, '\0');
  stream.clear();
  stream.seekg(static_cast<std::streamoff>(at));
  stream.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  return bytes;
}

// A block of a user's may precede it: the mark is at 0, 512 or the next powers of two (HDF5 File Format,
// II.A).
bool is_hdf5(std::ifstream& stream, std::uintmax_t size) {
  for (std::uintmax_t at = 0; at + hdf5_mark.size() <= size; at = at == 0 ? 512 : 2 * at)
    if (part_of(stream, at, hdf5_mark.size()) == hdf5_mark) return true;
  return false;
}

bool is_tiff(std::string_view begin) {
  using namespace std::string_view_literals;
  return begin.starts_with("II*\0"sv) || begin.starts_with("MM\0*"sv) || begin.starts_with("II+\0"sv) ||
         begin.starts_with("MM\0+"sv);
}

// A length and a JSON object.
bool is_safetensors(std::string_view begin, std::uintmax_t size) {
  if (begin.size() < 9 || begin[8] != '{') return false;
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(begin[i]);
  return length <= size - 8;
}

}  // namespace

bool is_printable_text(std::string_view begin) {
  return !begin.empty() && std::ranges::none_of(begin, [](unsigned char byte) {
    return byte == 127 || (byte < 32 && byte != '\n' && byte != '\r' && byte != '\t' && byte != '\f');
  });
}

FileForm form_of(const std::filesystem::path& path) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return FileForm::other;
  const std::uintmax_t size = std::filesystem::file_size(path, none);
  if (none || ::access(path.c_str(), R_OK) != 0) return FileForm::other;
  std::ifstream stream = open_regular_file(path);
  const std::string begin = part_of(stream, 0, looked_at);
  if (begin.starts_with("\x93NUMPY")) return FileForm::npy;
  if (begin.starts_with("PK\x03\x04") || begin.starts_with("PK\x05\x06")) return FileForm::npz;
  if (begin.starts_with("GGUF")) return FileForm::gguf;
  if (is_tiff(begin)) return FileForm::tiff;
  if (is_safetensors(begin, size)) return FileForm::safetensors;
  if (is_hdf5(stream, size)) return FileForm::hdf5;
  return is_printable_text(begin) ? FileForm::text : FileForm::other;
}

const char* name_of(FileForm form) {
  switch (form) {
    case FileForm::npy: return "an npy file";
    case FileForm::npz: return "a zip archive";
    case FileForm::hdf5: return "an HDF5 file";
    case FileForm::safetensors: return "a safetensors file";
    case FileForm::tiff: return "a TIFF file";
    case FileForm::gguf: return "a GGUF file";
    case FileForm::text: return "a text";
    case FileForm::other: break;
  }
  return "a file of unknown form";
}

bool ends_in(const std::filesystem::path& path, std::initializer_list<std::string_view> endings) {
  std::string ending = path.extension().string();
  for (char& c : ending)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return std::ranges::find(endings, ending) != endings.end();
}

bool is_text(const std::filesystem::path& path, std::initializer_list<std::string_view> endings) {
  const FileForm form = form_of(path);
  return form == FileForm::text || (form == FileForm::other && ends_in(path, endings));
}

}  // namespace superstep::data
