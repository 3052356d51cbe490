// LMDB: a value a sample.
#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/file/records/lmdb_values.h"
#include "superstep/file/records/record_forms.h"
#include "superstep/file/records/record_source.h"

namespace superstep::data {
namespace {

class LmdbSource : public RecordSource {
 public:
  LmdbSource(const std::filesystem::path& path, const SourceRequest& request)
      : base_(path), samples_(samples_of(base_)) {
    if (samples_.empty()) throw Error(ErrorCode::bad_file, "holds no sample", base_.path().string());
    settle(static_cast<std::int64_t>(samples_.size()), request);
    if (const std::size_t left = base_.entries().size() - samples_.size(); left > 0)
      add_note(fmt::format("{}: {} keys that are no numbers were left out: {}{}", base_.path().string(), left,
                           left_out(), left > 1 ? ", ..." : ""));
  }

 protected:
  Record record(std::int64_t row) const override {
    return record_of_value(base_.value(samples_[static_cast<std::size_t>(row)]), place_of(row));
  }
  std::string place_of(std::int64_t row) const override {
    const auto at = static_cast<std::size_t>(row);
    return fmt::format("{}: key '{}'", base_.path().string(),
                       printable(at < samples_.size() ? samples_[at].key : ""));
  }
  void require_unchanged() const override { base_.require_unchanged(); }

 private:
  std::string left_out() const {
    for (const LmdbEntry& entry : base_.entries())
      if (std::ranges::find(samples_, entry.key, &LmdbEntry::key) == samples_.end())
        return printable(entry.key);
    return {};
  }

  Lmdb base_;
  std::vector<LmdbEntry> samples_;
};

}  // namespace

std::unique_ptr<SampleSource> open_lmdb_source(const std::filesystem::path& path,
                                               const SourceRequest& request) {
  return std::make_unique<LmdbSource>(path, request);
}

}  // namespace superstep::data
