#include "superstep/show/weight_arrays.h"

#include <fmt/format.h>

#include "superstep/base/text.h"
#include "superstep/file/weights/weight_file.h"
#include "superstep/show/tensor_arrays.h"

namespace superstep::show {
namespace {

// A note as an attribute: of a list, how long it is.
struct AttributeOf {
  data::Attribute operator()(std::int64_t value) const { return value; }
  data::Attribute operator()(double value) const { return value; }
  data::Attribute operator()(const std::string& value) const { return value; }
  template <class T>
  data::Attribute operator()(const std::vector<T>& list) const {
    return fmt::format("{} entries", format_count(static_cast<double>(list.size())));
  }
};

class WeightArrays : public ArrayFile {
 public:
  explicit WeightArrays(data::WeightFile file) : file_(std::move(file)) {}

  std::vector<data::DataSetInfo> data_sets() const override {
    std::vector<data::DataSetInfo> infos;
    for (const data::Weight& weight : file_.weights())
      infos.push_back({weight.name, weight.shape,
                       weight.unread.empty() ? std::optional(weight.element) : std::nullopt,
                       weight.type_name(), false});
    return infos;
  }

  Tensor read_block(const data::DataSetInfo& info, ElementType type, std::span<const std::int64_t> first,
                    std::span<const std::int64_t> count) const override {
    const data::Weight& weight = *file_.find(info.name);
    if (weight.blocks == data::BlockFormat::none && !weight.bytes.empty() &&
        weight.element != ElementType::boolean)
      return block_of(weight.bytes.data(), weight.element, weight.shape, type, first, count);
    if (last_name_ != info.name) last_ = weight.tensor(), last_name_ = info.name;
    return block_of(last_, type, first, count);
  }

  std::vector<std::string> read_strings(const data::DataSetInfo&) const override { return {}; }

  std::map<std::string, data::Attribute> attributes(const std::string& name) const override {
    std::map<std::string, data::Attribute> found;
    if (!name.empty()) return found;
    for (const auto& [key, note] : file_.notes()) found.emplace(key, std::visit(AttributeOf(), note));
    return found;
  }

  std::string summary() const override {
    double elements = 0, bytes = 0;
    for (const data::Weight& weight : file_.weights()) {
      const auto count = static_cast<double>(weight.shape.element_count());
      const data::BlockSize size = data::block_size(weight.blocks);
      elements += count;
      bytes += weight.blocks == data::BlockFormat::none
                   ? count * static_cast<double>(size_in_bytes(weight.element))
                   : count / static_cast<double>(size.values) * static_cast<double>(size.bytes);
    }
    return fmt::format("{}{}: {} arrays, {} numbers, {}", file_.format(),
                       file_.files() > 1 ? fmt::format(" in {} shards", file_.files()) : std::string(),
                       format_count(static_cast<double>(file_.weights().size())), format_count(elements),
                       format_bytes(bytes));
  }

 private:
  data::WeightFile file_;
  // The array that was unpacked last: its blocks are asked for one after another.
  mutable std::string last_name_;
  mutable Tensor last_;
};

}  // namespace

bool is_shown_as_weights(const std::filesystem::path& path) {
  return data::is_named_as_weights(path) || data::holds_weights(path);
}

std::unique_ptr<ArrayFile> open_weight_arrays(const std::filesystem::path& path) {
  return std::make_unique<WeightArrays>(data::WeightFile::open(path));
}

}  // namespace superstep::show
