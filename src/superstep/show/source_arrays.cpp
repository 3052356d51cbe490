#include "superstep/show/source_arrays.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/file/source/forms.h"

namespace superstep::show {
namespace {

class SourceArrays : public ArrayFile {
 public:
  explicit SourceArrays(const std::filesystem::path& given)
      : source_(data::open_source(given, {.wanted = {}, .options = {{"fit", "first"}}})) {
    if (const data::SourceForm* form = data::form_for(given)) words_ = form->words;
  }

  std::vector<data::DataSetInfo> data_sets() const override {
    std::vector<data::DataSetInfo> infos;
    for (const data::SourceArray& array : source_->arrays())
      infos.push_back({.name = array.name,
                       .shape = array.shape(),
                       .type = array.type,
                       .type_name = std::string(name_of(array.type))});
    std::ranges::sort(infos, {}, &data::DataSetInfo::name);
    return infos;
  }

  Tensor read_block(const data::DataSetInfo& info, ElementType type, std::span<const std::int64_t> first,
                    std::span<const std::int64_t> count) const override {
    const std::size_t at = data::require_array(*source_, info.name, "");
    const bool single = source_->arrays()[at].single;
    std::vector<std::int64_t> rows(static_cast<std::size_t>(single ? 1 : count[0]));
    std::iota(rows.begin(), rows.end(), single ? 0 : first[0]);
    const Tensor whole = data::read_rows(*source_, at, rows);
    std::vector<std::int64_t> begin(first.begin(), first.end());
    if (!single) begin[0] = 0;
    return block_of(whole, begin, count).converted(type);
  }

  std::vector<std::string> read_strings(const data::DataSetInfo&) const override { return {}; }
  std::map<std::string, data::Attribute> attributes(const std::string& name) const override {
    const std::size_t at = data::find_array(*source_, name);
    if (name.empty() || at == source_->arrays().size() || source_->arrays()[at].classes.empty()) return {};
    return {{"meaning", fmt::format("0 is {}", fmt::join(source_->arrays()[at].classes, ", then "))}};
  }

  std::string summary() const override {
    std::string text = words_;
    const auto add = [&](const std::string& line) { text += (text.empty() ? "" : "\n") + line; };
    if (const auto training = source_->training_rows())
      add(fmt::format("the first {} samples train, the others validate", *training));
    if (!source_->shards().empty())
      add(fmt::format("read in its order alone, in {} parts", source_->shards().size()));
    if (const auto others = source_->others(); !others.empty())
      add(fmt::format("not read as numbers: {}", fmt::join(others, ", ")));
    for (const std::string& note : source_->notes()) add(note);
    return text;
  }

 private:
  static Tensor block_of(const Tensor& whole, const std::vector<std::int64_t>& first,
                         std::span<const std::int64_t> count) {
    Tensor block(whole.type(), Shape(std::vector<std::int64_t>(count.begin(), count.end())));
    if (block.element_count() == 0) return block;
    if (count.empty() || block.shape() == whole.shape()) return whole;
    const auto from = whole.shape().row_major_strides(), to = block.shape().row_major_strides();
    const std::size_t width = size_in_bytes(whole.type());
    const auto run = static_cast<std::size_t>(count.back()) * width;
    for (std::int64_t at = 0; at < block.element_count(); at += count.back()) {
      std::int64_t source = 0;
      for (std::size_t axis = 0; axis < count.size(); ++axis)
        source += (at / to[axis] % count[axis] + first[axis]) * from[axis];
      std::memcpy(block.bytes() + static_cast<std::size_t>(at) * width,
                  whole.bytes() + static_cast<std::size_t>(source) * width, run);
    }
    return block;
  }

  std::unique_ptr<data::SampleSource> source_;
  std::string words_;
};

}  // namespace

std::unique_ptr<ArrayFile> open_source_arrays(const std::filesystem::path& given) {
  return std::make_unique<SourceArrays>(given);
}

}  // namespace superstep::show
