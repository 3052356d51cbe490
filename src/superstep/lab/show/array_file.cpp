#include "superstep/lab/show/array_file.h"

#include <fmt/format.h>

namespace superstep::lab {
namespace {

class Hdf5Arrays : public ArrayFile {
 public:
  explicit Hdf5Arrays(const std::filesystem::path& path) : file_(path) {}

  std::vector<data::DataSetInfo> data_sets() const override { return file_.data_sets(); }

  Tensor read_block(const data::DataSetInfo& info, ElementType type, std::span<const std::int64_t> first,
                    std::span<const std::int64_t> count) const override {
    return file_.read_block(info.name, type, first, count);
  }

  std::vector<std::string> read_strings(const data::DataSetInfo& info) const override {
    return file_.read_strings(info.name);
  }

  std::map<std::string, data::Attribute> attributes(const std::string& name) const override {
    return file_.attributes(name);
  }

 private:
  data::Hdf5File file_;
};

}  // namespace

std::unique_ptr<ArrayFile> open_array_file(const std::filesystem::path& path) {
  return std::make_unique<Hdf5Arrays>(path);
}

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

}  // namespace superstep::lab
