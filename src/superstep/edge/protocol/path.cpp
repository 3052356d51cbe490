#include "superstep/edge/protocol/path.h"

#include <fmt/format.h>

#include <charconv>

#include "superstep/base/text.h"

namespace superstep::edge {
namespace {

std::string percent_decoded(std::string_view part) {
  std::string decoded;
  for (std::size_t i = 0; i < part.size(); ++i) {
    unsigned value = 0;
    const char* const figures = part.data() + i + 1;
    const bool is_code = part[i] == '%' && i + 2 < part.size() &&
                         std::from_chars(figures, figures + 2, value, 16).ptr == figures + 2;
    decoded += is_code ? static_cast<char>(value) : part[i];
    if (is_code) i += 2;
  }
  return decoded;
}

bool is_unreserved(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

}  // namespace

std::vector<std::string> parts_of(std::string_view path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  while (path.ends_with('/')) path.remove_suffix(1);
  std::vector<std::string> parts = split(path, '/');
  for (std::string& part : parts) part = percent_decoded(part);
  return parts;
}

std::string percent_encoded(std::string_view name) {
  std::string encoded;
  for (const char c : name)
    encoded += is_unreserved(static_cast<unsigned char>(c))
                   ? std::string(1, c)
                   : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return encoded;
}

}  // namespace superstep::edge
