#include <fmt/format.h>

#include "superstep/base/printable.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/hdf5/hdf5_place.h"
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

}  // namespace

std::unique_ptr<SampleSource> open_hdf5_source(const std::filesystem::path& path, const SourceRequest&) {
  const auto file = std::make_shared<const Hdf5File>(path);
  const auto stable = std::make_shared<const StableFile>(path);
  auto source = std::make_unique<ArraySource>(path.string(), "data set");
  for (const DataSetInfo& info : file->data_sets()) {
    if (!info.type) {
      source->add_other(fmt::format("'{}' ({})", printable(info.name), info.type_name));
      continue;
    }
    SourceArray array = array_of(info.name, *info.type, info.shape);
    // A complex value alone has an axis of two parts, and no rows.
    if (info.complex && info.shape.rank() == 1)
      array = {.name = info.name, .type = *info.type, .row = info.shape, .rows = 1, .single = true};
    source->add(array, std::make_unique<RowsOfDataSet>(file, stable, array));
  }
  return source;
}

}  // namespace superstep::data
