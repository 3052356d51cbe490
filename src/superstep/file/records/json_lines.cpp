// JSON lines: where the lines begin is found when the file is opened, and a line is read when it is wanted.
#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/file/form.h"
#include "superstep/file/packing/content.h"
#include "superstep/file/records/json_values.h"
#include "superstep/file/records/record_forms.h"
#include "superstep/file/records/record_source.h"

namespace superstep::data {
namespace {

constexpr std::size_t piece = 1 << 20;                          // read at a time
constexpr std::uint64_t longest_line = std::uint64_t{1} << 30;  // beyond it a file has no lines: chosen

struct Line {
  std::uint64_t begin = 0;
  std::uint64_t number : 32 = 0, size : 32 = 0;  // the number from 1 on, blank lines counted
};

class JsonLines : public RecordSource {
 public:
  JsonLines(const std::filesystem::path& path, const SourceRequest& request) : file_(path) {
    index();
    settle(static_cast<std::int64_t>(lines_.size()), request);
  }

 protected:
  Record record(std::int64_t row) const override {
    const Line& line = lines_[static_cast<std::size_t>(row)];
    std::string text(line.size, '\0');
    file_.read(line.begin, std::as_writable_bytes(std::span(text)));
    Record whole;
    add_json_values(whole, text, place_of(row));
    return whole;
  }
  std::string place_of(std::int64_t row) const override {
    const auto at = static_cast<std::size_t>(row);
    return fmt::format("{}:{}", file_.path().string(),
                       at < lines_.size() ? std::uint64_t{lines_[at].number} : 1);
  }
  void require_unchanged() const override { file_.require_unchanged(); }
  bool is_ordered() const override { return file_.is_ordered(); }

 private:
  void index() {
    Progress progress = Progress::passing("looking for lines", file_.stored_bytes(), "bytes");
    InterruptCheck stop;
    std::string bytes;
    bool blank = true;
    for (std::uint64_t at = 0; file_.has(at, 1); at += bytes.size()) {
      bytes.resize(file_.has(at, piece) ? piece : static_cast<std::size_t>(file_.size() - at));
      file_.read(at, std::as_writable_bytes(std::span(bytes)));
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (bytes[i] == '\n') end_line(at + i, blank);
        blank = bytes[i] == '\n' || (blank && (bytes[i] == ' ' || bytes[i] == '\t' || bytes[i] == '\r'));
      }
      progress.update(file_.stored_position(at));
      stop.throw_if_due(file_.path().string());
    }
    end_line(file_.size(), blank);
    file_.require_unchanged();
  }

  void end_line(std::uint64_t end, bool blank) {
    ++number_;
    if (!blank) {
      if (end - begin_ > longest_line)
        throw Error(ErrorCode::bad_file, "has a line of more than a gigabyte", file_.path().string(),
                    "a line holds one sample");
      Line line{.begin = begin_};
      line.number = static_cast<std::uint32_t>(number_);
      line.size = static_cast<std::uint32_t>(end - begin_);
      lines_.push_back(line);
    }
    begin_ = end + 1;
  }

  Content file_;
  std::vector<Line> lines_;
  std::uint64_t begin_ = 0, number_ = 0;
};

}  // namespace

bool is_json_lines(const std::filesystem::path& path) {
  const std::filesystem::path name = unpacked_name(path);
  if (!ends_in(name, {".jsonl", ".ndjson", ".json"}) || !holds_text(path, {".jsonl", ".ndjson"}))
    return false;
  if (ends_in(name, {".jsonl", ".ndjson"})) return true;
  // Of a file that is called JSON: a first line that is a whole object.
  constexpr std::size_t looked_at = 1 << 16;
  const std::string line = first_content(path, looked_at);
  const std::size_t end = line.find('\n');
  return end != std::string::npos && line.find_first_not_of(" \t\r\n", end) != std::string::npos &&
         line.starts_with('{') && line[line.find_last_not_of("\r", end - 1)] == '}';
}

std::unique_ptr<SampleSource> open_json_lines(const std::filesystem::path& path,
                                              const SourceRequest& request) {
  return std::make_unique<JsonLines>(path, request);
}

}  // namespace superstep::data
