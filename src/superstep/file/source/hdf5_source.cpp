#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/printable.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/hdf5/hdf5_place.h"
#include "superstep/file/hdf5/nexus.h"
#include "superstep/file/source/array_forms.h"
#include "superstep/file/source/chunked_rows.h"
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

// The wanted array that is to be read from a data set of another name: the first that the file has none for,
// of as many elements a row. Null: there is none.
const SourceArray* wanted_for(const SourceArray& signal, std::span<const DataSetInfo> data_sets,
                              const SourceRequest& request) {
  for (const SourceArray& wanted : request.wanted) {
    const bool there =
        std::ranges::any_of(data_sets, [&](const DataSetInfo& info) { return info.name == wanted.name; });
    if (!there && wanted.row.rank() > 0 && wanted.row.element_count() == signal.row.element_count())
      return &wanted;
  }
  return nullptr;
}

// Only where something is wanted that is not there: it costs some questions to the library.
std::string signal_for(const Hdf5File& file, std::span<const DataSetInfo> data_sets,
                       const SourceRequest& request) {
  const auto there = [&](const SourceArray& wanted) {
    return std::ranges::any_of(data_sets, [&](const DataSetInfo& info) { return info.name == wanted.name; });
  };
  return std::ranges::all_of(request.wanted, there) ? "" : nexus_signal(file, data_sets);
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
    if (const SourceArray* wanted = info.name == signal ? wanted_for(array, data_sets, request) : nullptr) {
      source->add_note(fmt::format("{}: '{}' is the file's signal by NeXus, '{}'", path.string(),
                                   printable(wanted->name), printable(info.name)));
      array.name = wanted->name;
      array.row = wanted->row;
    }
    source->add(array, std::move(rows));
  }
  return source;
}

}  // namespace superstep::data
