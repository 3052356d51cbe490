#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/printable.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/hdf5/hdf5_place.h"
#include "superstep/file/hdf5/nexus.h"
#include "superstep/file/source/array_forms.h"
#include "superstep/file/source/chunked_rows.h"
#include "superstep/file/source/fit.h"
#include "superstep/file/source/row_reader.h"

namespace superstep::data {
namespace {

// Through the library, which is in a child process.
class RowsOfHdf5 : public RowReader {
 public:
  RowsOfHdf5(std::shared_ptr<const Hdf5File> file, std::shared_ptr<const StableFile> stable,
             SourceArray array)
      : file_(std::move(file)), stable_(std::move(stable)), array_(std::move(array)) {}

  void read(std::span<const std::int64_t> rows, std::byte* to) const override {
    stable_->require_unchanged();  // before the library: it would call a file that was cut short damaged
    for_runs(rows, array_.row_bytes(), to, [&](std::int64_t first, std::int64_t count, std::byte* at) {
      const Tensor read = array_.single ? file_->read(array_.name, array_.type)
                                        : file_->read_rows(array_.name, array_.type, first, count);
      read.copy_to(at);
    });
    stable_->require_unchanged();
  }

 private:
  std::shared_ptr<const Hdf5File> file_;
  std::shared_ptr<const StableFile> stable_;
  SourceArray array_;
};

// Straight from the file where the data set lies there as this machine has it, or packed by deflate; else
// through the library. Where it lies is asked for when a row is: files may have thousands of data sets.
class RowsOfDataSet : public RowReader {
 public:
  RowsOfDataSet(std::shared_ptr<const Hdf5File> file, std::shared_ptr<const StableFile> stable,
                SourceArray array)
      : file_(std::move(file)), stable_(std::move(stable)), array_(std::move(array)) {}

  void read(std::span<const std::int64_t> rows, std::byte* to) const override { reader().read(rows, to); }

 private:
  const RowReader& reader() const {
    const std::lock_guard lock(mutex_);
    if (reader_) return *reader_;
    stable_->require_unchanged();
    if (const auto place = file_->place_of(array_.name))
      reader_ = rows_at(*place, array_, data::place(file_->path(), array_.name));
    if (!reader_) reader_ = std::make_unique<RowsOfHdf5>(file_, stable_, array_);
    return *reader_;
  }

  std::shared_ptr<const Hdf5File> file_;
  std::shared_ptr<const StableFile> stable_;
  SourceArray array_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<RowReader> reader_;
};

// The wanted array that is to be read from a data set of another name: the first that the file has none for
// and that its rows fit, be it after they were cut. Null: there is none.
const SourceArray* wanted_for(const SourceArray& signal, std::span<const DataSetInfo> data_sets,
                              const SourceRequest& request) {
  for (const SourceArray& wanted : request.wanted) {
    const bool there =
        std::ranges::any_of(data_sets, [&](const DataSetInfo& info) { return info.name == wanted.name; });
    if (!there && wanted.row.rank() > 0 && fit_to(signal, wanted.row.extents(), true)) return &wanted;
  }
  return nullptr;
}

// Only where something is wanted that is not there: it costs some questions to the library.
std::string signal_for(const Hdf5File& file, std::span<const DataSetInfo> data_sets,
                       const SourceRequest& request) {
  const auto there = [&](const SourceArray& wanted) {
    return std::ranges::any_of(data_sets, [&](const DataSetInfo& info) { return info.name == wanted.name; });
  };
  const bool asked = !request.signal.empty() && !there({.name = request.signal, .row = {}});
  return !asked && std::ranges::all_of(request.wanted, there) ? "" : nexus_signal(file, data_sets);
}

// The signal under the name that is wanted, and in rows of the shape that is, where it has as many elements.
void name_signal(SourceArray& array, std::span<const DataSetInfo> data_sets, const SourceRequest& request,
                 ArraySource& source) {
  const SourceArray* wanted = wanted_for(array, data_sets, request);
  const std::string name = !request.signal.empty() ? request.signal : wanted ? wanted->name : array.name;
  if (name == array.name) return;
  source.add_note(fmt::format("{}: '{}' is the file's signal by NeXus, '{}'", source.where(), printable(name),
                              printable(array.name)));
  array.name = name;
  const auto fit = wanted ? fit_to(array, wanted->row.extents(), false) : std::nullopt;
  if (fit && !fit->one_sample) array.row = fit->row;
}

}  // namespace

std::unique_ptr<SampleSource> open_hdf5_source(const std::filesystem::path& path,
                                               const SourceRequest& request) {
  const auto file = std::make_shared<const Hdf5File>(path);
  const auto stable = std::make_shared<const StableFile>(path);
  auto source = std::make_unique<ArraySource>(path.string(), "data set");
  const std::vector<DataSetInfo> data_sets = file->data_sets();
  const std::string signal = signal_for(*file, data_sets, request);
  for (const DataSetInfo& info : data_sets) {
    if (!info.type) {
      source->add_other(fmt::format("'{}' ({})", printable(info.name), info.type_name));
      continue;
    }
    SourceArray array = array_of(info.name, *info.type, info.shape);
    // A complex value alone has an axis of two parts, and no rows.
    if (info.complex && info.shape.rank() == 1)
      array = {.name = info.name, .type = *info.type, .row = info.shape, .rows = 1, .single = true};
    auto rows = std::make_unique<RowsOfDataSet>(file, stable, array);
    if (info.name == signal) name_signal(array, data_sets, request, *source);
    source->add(array, std::move(rows));
  }
  return source;
}

}  // namespace superstep::data
