#include "superstep/show/sample_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "superstep/base/printable.h"
#include "superstep/base/text.h"
#include "superstep/file/form.h"
#include "superstep/file/source/forms.h"
#include "superstep/file/source/paths.h"
#include "superstep/show/model_file.h"
#include "superstep/show/tensor_arrays.h"
#include "superstep/show/weight_arrays.h"

namespace superstep::show {
namespace {

namespace fs = std::filesystem;

// Of arrays whose samples must be decoded: so many, spread evenly, say what the others are like. Chosen: a
// moment of decoding.
constexpr std::int64_t rows_looked_at = 1024;

bool is_file_of_arrays(const fs::path& path) {
  switch (data::form_of(path)) {
    case data::FileForm::npy:
    case data::FileForm::npz:
    case data::FileForm::hdf5:
    case data::FileForm::safetensors:
    case data::FileForm::tiff:
    case data::FileForm::gguf: return true;
    case data::FileForm::text:
    case data::FileForm::other: break;
  }
  return is_shown_as_model(path) || is_shown_as_weights(path);
}

std::int64_t samples_of(const data::SampleSource& source) {
  std::int64_t most = 0;
  for (const data::SourceArray& array : source.arrays())
    if (!array.single) most = std::max(most, array.rows);
  return most;
}

std::string name_of_array(const data::SourceArray& array) {
  return array.name.empty() ? "array" : array.name;
}

// A number a sample that is known without looking at the sample.
bool is_listed(const data::SourceArray& array) { return !array.classes.empty() || array.name == "part"; }

class SampleArrays : public ArrayFile {
 public:
  SampleArrays(std::shared_ptr<const data::SampleSource> source, SampleFacts named)
      : source_(std::move(source)), facts_(std::move(named)) {
    facts_.samples = samples_of(*source_);
    facts_.others = source_->others();
    facts_.notes = source_->notes();
    for (const data::SourceArray& array : source_->arrays())
      if (!array.single && array.rows == facts_.samples)
        facts_.sample_bytes += static_cast<double>(array.row_bytes());
    count_training();
    count_classes();
  }

  std::vector<data::DataSetInfo> data_sets() const override {
    std::vector<data::DataSetInfo> infos;
    for (const data::SourceArray& array : source_->arrays())
      infos.push_back(
          {name_of_array(array), array.shape(), array.type, superstep::name_of(array.type), false});
    std::ranges::sort(infos, {}, &data::DataSetInfo::name);
    return infos;
  }

  Tensor read_block(const data::DataSetInfo& info, ElementType type, std::span<const std::int64_t> first,
                    std::span<const std::int64_t> count) const override {
    const std::size_t at = position_of(info.name);
    const data::SourceArray& array = source_->arrays()[at];
    if (array.single) return block_of(rows_of(at, 0, 1).reshaped(array.row), type, first, count);
    const Tensor rows = rows_of(at, first[0], count[0]);
    std::vector<std::int64_t> begin(first.begin(), first.end());
    begin[0] = 0;
    return block_of(rows, type, begin, count);
  }

  std::vector<std::string> read_strings(const data::DataSetInfo&) const override { return {}; }

  std::map<std::string, data::Attribute> attributes(const std::string& name) const override {
    const auto& arrays = source_->arrays();
    const auto found = std::ranges::find(arrays, name, name_of_array);
    if (name.empty() || found == arrays.end() || found->classes.empty()) return {};
    return {{"meaning", fmt::format("0 is {}", join(found->classes, ", then "))}};
  }

  std::string summary() const override {
    std::string text =
        fmt::format("{}{}: {} sample{} of {}{}", facts_.words,
                    facts_.files > 1 ? fmt::format(", {} files", facts_.files) : std::string(),
                    format_count(static_cast<double>(facts_.samples)), facts_.samples == 1 ? "" : "s",
                    format_bytes(facts_.sample_bytes), split_words());
    if (!facts_.others.empty()) text += fmt::format("\nnot read as numbers: {}", join(facts_.others, ", "));
    for (const std::string& note : facts_.notes) text += "\n" + note;
    return text;
  }

  std::int64_t most_looked_at(const data::DataSetInfo& info) const override {
    const data::SourceArray& array = source_->arrays()[position_of(info.name)];
    const std::int64_t usual = ArrayFile::most_looked_at(info);
    if (array.single || is_listed(array)) return usual;
    return std::min(usual, rows_looked_at * std::max<std::int64_t>(1, array.row.element_count()));
  }

  const SampleFacts* sample_facts() const override { return &facts_; }

 private:
  std::size_t position_of(const std::string& name) const {
    const auto found = std::ranges::find(source_->arrays(), name, name_of_array);
    return static_cast<std::size_t>(found - source_->arrays().begin());
  }

  Tensor rows_of(std::size_t array, std::int64_t first, std::int64_t count) const {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
    std::iota(rows.begin(), rows.end(), first);
    return data::read_rows(*source_, array, rows);
  }

  void count_training() {
    if (const auto training = source_->training_rows()) facts_.training = *training;
  }

  // Of the only array that names its classes.
  void count_classes() {
    const auto& arrays = source_->arrays();
    const auto named = [](const data::SourceArray& array) { return !array.classes.empty(); };
    const auto found = std::ranges::find_if(arrays, named);
    if (found == arrays.end() || std::find_if(found + 1, arrays.end(), named) != arrays.end()) return;
    for (const std::string& name : found->classes) facts_.classes.push_back({.name = name});
    const Tensor labels = data::read_whole(*source_, static_cast<std::size_t>(found - arrays.begin()));
    for (std::int64_t i = 0; i < labels.element_count(); ++i) {
      const auto label = static_cast<std::size_t>(labels.at(i));
      if (label >= facts_.classes.size()) continue;
      ++facts_.classes[label].samples;
      if (i < facts_.training) ++facts_.classes[label].training;
    }
  }

  std::string split_words() const {
    std::string words;
    if (!facts_.classes.empty()) words += fmt::format(", {} classes", facts_.classes.size());
    if (facts_.training >= 0)
      words +=
          fmt::format(", {} to train and {} to validate", format_count(static_cast<double>(facts_.training)),
                      format_count(static_cast<double>(facts_.samples - facts_.training)));
    if (const auto shards = source_->shards(); !shards.empty())
      words += fmt::format(", read in its order alone, in {} parts", shards.size());
    return words;
  }

  std::shared_ptr<const data::SampleSource> source_;
  SampleFacts facts_;
};

SampleFacts named_form(const fs::path& path) {
  const std::vector<fs::path> named = data::named_paths(path);
  const data::SourceForm* form = data::form_for(named.front());
  return {.form = form ? form->name : "folder",
          .words = form ? form->words : "a folder of files",
          .files = static_cast<std::int64_t>(named.size())};
}

}  // namespace

// A folder of weights is no folder of samples.
bool is_shown_as_samples(const fs::path& path) {
  std::error_code none;
  if (!fs::exists(path, none)) return true;  // a pattern of names, or nothing, which open_source() says
  if (fs::is_directory(path, none)) return !is_shown_as_weights(path);
  return fs::is_regular_file(path, none) && !is_file_of_arrays(path) && data::form_for(path) != nullptr;
}

std::unique_ptr<ArrayFile> open_sample_arrays(const fs::path& path, const data::SourceRequest& request) {
  data::SourceRequest fitting = request;
  if (fitting.wanted.empty()) fitting.options["fit"] = "first";  // pictures of other sizes are brought to its
  std::shared_ptr<const data::SampleSource> source = data::open_source(path, fitting);
  return std::make_unique<SampleArrays>(std::move(source), named_form(path));
}

std::unique_ptr<ArrayFile> sample_arrays_of(std::shared_ptr<const data::SampleSource> source) {
  return std::make_unique<SampleArrays>(std::move(source),
                                        SampleFacts{.form = "text", .words = "texts as tokens"});
}

}  // namespace superstep::show
