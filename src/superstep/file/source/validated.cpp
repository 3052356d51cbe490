#include "superstep/file/source/validated.h"

#include <vector>

#include "superstep/base/error.h"
#include "superstep/file/source/joined_source.h"

namespace superstep::data {
namespace {

// A source of which so many rows train, whatever its files say.
class OfWhichTrain : public SampleSource {
 public:
  OfWhichTrain(std::unique_ptr<SampleSource> source, std::int64_t rows)
      : source_(std::move(source)), rows_(rows) {}

  const std::vector<SourceArray>& arrays() const override { return source_->arrays(); }
  void read(std::span<const std::int64_t> rows, std::span<const RowsTo> arrays) const override {
    source_->read(rows, arrays);
  }
  std::string place(std::size_t array, std::int64_t row) const override { return source_->place(array, row); }
  std::vector<std::int64_t> shards() const override { return source_->shards(); }
  std::optional<std::int64_t> training_rows() const override { return rows_; }
  std::optional<std::size_t> group() const override { return source_->group(); }
  std::vector<std::string> others() const override { return source_->others(); }
  std::vector<std::string> notes() const override { return source_->notes(); }

 private:
  const std::unique_ptr<SampleSource> source_;
  const std::int64_t rows_;
};

std::int64_t rows_of(const SampleSource& source, const std::string& name) {
  const std::int64_t rows = usual_rows(source);
  if (rows < 1) throw Error(ErrorCode::bad_file, "holds no samples", name);
  return rows;
}

}  // namespace

std::unique_ptr<SampleSource> with_validation(std::unique_ptr<SampleSource> training,
                                              std::string training_name,
                                              std::unique_ptr<SampleSource> validation,
                                              std::string validation_name) {
  if (training->training_rows())
    throw Error(ErrorCode::invalid_argument,
                "says itself which of its samples validate, and --validation names others", training_name,
                "leave --validation away, or name the part that trains");
  const std::int64_t rows = rows_of(*training, training_name);
  rows_of(*validation, validation_name);
  std::vector<std::unique_ptr<SampleSource>> parts;
  parts.push_back(std::make_unique<OfWhichTrain>(std::move(training), rows));
  parts.push_back(std::make_unique<OfWhichTrain>(std::move(validation), 0));
  return joined_sources(std::move(parts), {std::move(training_name), std::move(validation_name)});
}

}  // namespace superstep::data
