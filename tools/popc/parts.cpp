#include "parts.h"

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string_view>

namespace popc {
namespace {

constexpr const char* section_name = ".poplar_parts";
constexpr std::string_view magic = "poplar parts 1  ";  // in front: a linker may drop an empty section
constexpr std::size_t id_letters = 32;  // of every part: what the section's table has

// A record of the file, where it has all of it.
template <class T>
std::optional<T> record_at(const std::string& bytes, std::uint64_t at) {
  T record;
  if (at > bytes.size() || bytes.size() - at < sizeof record) return std::nullopt;
  std::memcpy(&record, bytes.data() + at, sizeof record);
  return record;
}

std::optional<std::string> bytes_at(const std::string& bytes, std::uint64_t at, std::uint64_t size) {
  if (at > bytes.size() || size > bytes.size() - at) return std::nullopt;
  return bytes.substr(at, size);
}

std::optional<std::string> section_of(const std::string& file) {
  const auto header = record_at<Elf64_Ehdr>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64)
    return std::nullopt;
  const auto section = [&](std::uint64_t i) {
    return record_at<Elf64_Shdr>(file, header->e_shoff + i * sizeof(Elf64_Shdr));
  };
  const auto names = section(header->e_shstrndx);
  if (!names) return std::nullopt;
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    const auto one = section(i);
    if (!one) return std::nullopt;
    const auto name = bytes_at(file, names->sh_offset + one->sh_name, std::strlen(section_name) + 1);
    if (name && std::strcmp(name->c_str(), section_name) == 0) return bytes_at(file, one->sh_offset, one->sh_size);
  }
  return std::nullopt;
}

std::uint64_t hash(const std::string& text, std::uint64_t start) {  // FNV-1a
  std::uint64_t value = start;
  for (const char letter : text) value = (value ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  return value;
}

std::string hexadecimal(std::uint64_t value) {
  std::string text(16, '0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = "0123456789abcdef"[value >> (60 - 4 * i) & 15];
  return text;
}

}  // namespace

std::string word_of(const std::string& text) {
  return hexadecimal(hash(text, 0xcbf29ce484222325u)) + hexadecimal(hash(text, 0x84222325cbf29ce4u));
}

// Entries of an identifier, a size and the bytes, one after the other.
std::string source_of_parts(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string text = "__asm__(\".pushsection " + std::string(section_name) +
                     ",\\\"\\\",@progbits\\n.ascii \\\"" + std::string(magic) + "\\\"\\n\"\n";
  for (const auto& [id, file] : files)
    text += "  \".ascii \\\"" + id + "\\\"\\n.quad " + std::to_string(std::filesystem::file_size(file)) +
            "\\n.incbin \\\"" + file + "\\\"\\n\"\n";
  return text + "  \".popsection\\n\");\n";
}

std::optional<std::vector<Part>> parts_of(const std::string& file) {
  const std::optional<std::string> section = section_of(file);
  if (!section || !section->starts_with(magic)) return std::nullopt;
  std::vector<Part> parts;
  for (std::uint64_t at = magic.size(); at < section->size();) {
    const auto id = bytes_at(*section, at, id_letters);
    const auto size = record_at<std::uint64_t>(*section, at + id_letters);
    if (!id || !size || id->find_first_not_of("0123456789abcdef") != std::string::npos) return std::nullopt;
    at += id_letters + sizeof *size;
    const auto object = bytes_at(*section, at, *size);
    if (!object) return std::nullopt;
    parts.push_back({*id, *object});
    at += *size;
  }
  return parts;
}

}  // namespace popc
