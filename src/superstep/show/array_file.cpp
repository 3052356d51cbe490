#include "superstep/show/array_file.h"

#include <fmt/format.h>

namespace superstep::show {

std::string to_text(const data::Attribute& value) {
  struct Visitor {
    std::string operator()(std::int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return fmt::format("{:g}", number); }
    std::string operator()(const std::string& text) const { return text; }
  };
  return std::visit(Visitor(), value);
}

std::string attribute_text(const std::map<std::string, data::Attribute>& attributes,
                           const std::string& name) {
  const auto found = attributes.find(name);
  return found == attributes.end() ? "" : to_text(found->second);
}

}  // namespace superstep::show
