// JSON lines: where the lines begin is found when the file is opened, and a line is read when it is wanted.
#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/base/system/regular_file.h"
#include "superstep/base/system/stable_file.h"
#include "superstep/file/form.h"
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

 private:
  void index() {
    Progress progress = Progress::passing("looking for lines", static_cast<double>(file_.size()), "bytes");
    InterruptCheck stop;
    std::string bytes;
    bool blank = true;
    for (std::uint64_t at = 0; at < file_.size(); at += bytes.size()) {
      bytes.resize(std::min<std::uint64_t>(piece, file_.size() - at));
      file_.read(at, std::as_writable_bytes(std::span(bytes)));
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (bytes[i] == '\n') end_line(at + i, blank);
        blank = bytes[i] == '\n' || (blank && (bytes[i] == ' ' || bytes[i] == '\t' || bytes[i] == '\r'));
      }
      progress.update(static_cast<double>(at));
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

  StableFile file_;
  std::vector<Line> lines_;
  std::uint64_t begin_ = 0, number_ = 0;
};

}  // namespace

bool is_json_lines(const std::filesystem::path& path) {
  if (!ends_in(path, {".jsonl", ".ndjson", ".json"}) || !is_text(path, {".jsonl", ".ndjson"})) return false;
  if (ends_in(path, {".jsonl", ".ndjson"})) return true;
  // Of a file that is called JSON: a first line that is a whole object.
  std::string line;
  std::ifstream stream = open_regular_file(path);
  constexpr std::size_t looked_at = 1 << 16;
  line.resize(looked_at);
  stream.read(line.data(), looked_at);
  line.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  const std::size_t end = line.find('\n');
  return end != std::string::npos && line.find_first_not_of(" \t\r\n", end) != std::string::npos &&
         line.starts_with('{') && line[line.find_last_not_of("\r", end - 1)] == '}';
}

std::unique_ptr<SampleSource> open_json_lines(const std::filesystem::path& path,
                                              const SourceRequest& request) {
  return std::make_unique<JsonLines>(path, request);
}

}  // namespace superstep::data
