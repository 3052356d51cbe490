#include <fmt/format.h>

#include <cstdint>

#include "superstep/base/file.h"
#include "superstep/file/appended_file.h"
#include "superstep/file/records/wire_format.h"
#include "superstep/run/trackers/tracker.h"

namespace superstep::run {
namespace {

using data::bytes_field;

// Event: wall_time 1, step 2, file_version 3, summary 5. Summary: value 1. Value: tag 1, simple_value 2.
std::string first_event(double time) {
  return data::tf_record(data::double_field(1, time) + bytes_field(3, "brain.Event:2"));
}

// TensorBoard groups tags by what stands before the stroke.
std::string tag_of(const std::string& name) {
  if (is_of_parameter(name)) return name;
  return (is_of_training(name) ? "training/" : "validation/") + name;
}

std::string event_of(const RunStory& story, const LoggedEpoch& epoch) {
  std::string summary;
  for (const auto& [name, value] : epoch.values)
    summary += bytes_field(1, bytes_field(1, tag_of(name)) + data::float_field(2, static_cast<float>(value)));
  return data::tf_record(data::double_field(1, story.began + epoch.seconds) +
                         data::varint_field(2, static_cast<std::uint64_t>(epoch.step)) +
                         bytes_field(5, summary));
}

class TensorBoard : public Tracker {
 public:
  explicit TensorBoard(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void write(const RunStory& story) override {
    if (!file_ || story.epochs.size() < written_) begin(story);
    for (; written_ < story.epochs.size(); ++written_) file_->write(event_of(story, story.epochs[written_]));
    file_->flush();
  }

 private:
  // The name by which TensorBoard knows a file of events; the same for the same run.
  void begin(const RunStory& story) {
    make_folder(folder_);
    const std::string name = fmt::format("events.out.tfevents.{:.0f}.superstep", story.began);
    file_ = std::make_unique<data::AppendedFile>(folder_ / name, 0);
    file_->write(first_event(story.began));
    written_ = 0;
  }

  std::filesystem::path folder_;
  std::unique_ptr<data::AppendedFile> file_;
  std::size_t written_ = 0;
};

}  // namespace

std::unique_ptr<Tracker> tensorboard_tracker(std::filesystem::path folder) {
  return std::make_unique<TensorBoard>(std::move(folder));
}

}  // namespace superstep::run
