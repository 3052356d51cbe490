// What a server must not forget of a stream, however it ends: frames that were acknowledged and have no
// answer in a file yet, which frames of a series came, and what became of them.
//
// A frame is in the journal before it is acknowledged. A file of answers is named there, with the frames in
// it, before it is written: whether the file is there says whether they are answered. Every segment begins
// with the state of all series at that time, so that segments whose frames are all settled can go.
#pragma once

#include <array>
#include <filesystem>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "superstep/base/function_ref.h"
#include "superstep/base/system/folder_lock.h"
#include "superstep/edge/journal/segment_log.h"
#include "superstep/edge/service/account.h"
#include "superstep/edge/stream/series.h"

namespace superstep::edge {

using FrameParts = std::vector<std::span<const std::byte>>;
using OutcomeCounts = std::array<std::uint64_t, all_outcomes.size()>;

class Journal {
 public:
  struct Settings {
    std::filesystem::path folder;   // of the journal
    std::filesystem::path results;  // of files with answers
    std::size_t segment_bytes = std::size_t{64} << 20;
  };
  // Reads what is there. Throws Error (io, bad_file).
  explicit Journal(const Settings& settings);

  // A series as it was when the program ended.
  struct Known {
    Series series;
    bool ended = false;
    OutcomeCounts outcomes{};         // of frames that are settled
    std::vector<std::string> files;   // with answers
    int files_named = 0;              // the number of the last file that was begun
    std::set<std::uint64_t> waiting;  // came, and have no answer in a file
    explicit Known(const std::string& name) : series(name) {}
  };
  const std::map<std::string, Known>& known() const { return series_; }
  const std::list<std::string>& closed() const { return closed_; }  // the latest that were ended
  // Calls `each` with every message of a frame that waits. Those that are in no segment any more are named to
  // `lost`.
  void replay(FunctionRef<void(const FrameParts& parts)> each,
              FunctionRef<void(const std::string& series, std::uint64_t number)> lost);

  // All of these may be called by several threads, throw Error (io) and may then be called again.
  void begin(const std::string& series, std::uint64_t announced);
  void frame(const std::string& series, std::uint64_t number, const FrameParts& parts);
  void end(const std::string& series);
  void commit();
  // What became of a frame that gets no answer in a file.
  void settle(const std::string& series, std::uint64_t number, Outcome outcome);
  // FILE is about to be written, with these frames; then that it is there.
  void announce_file(const std::string& series, const std::string& file, int number,
                     const std::vector<std::uint64_t>& frames);
  void file_is_there(const std::string& series, const std::string& file,
                     const std::vector<std::uint64_t>& frames);
  void close(const std::string& series);

  std::uint64_t bytes() const;

 private:
  enum Kind : std::uint8_t { of_state = 1, of_begin, of_frame, of_end, of_file, of_settled, of_closed };
  void read_record(const LogRecord& record);
  void read_state(std::string_view text);
  std::string state() const;
  void append(Kind kind, const std::vector<std::span<const std::byte>>& contents);
  void append(Kind kind, const std::string& text);
  void apply_file(const std::string& series, const std::string& file, int number,
                  const std::vector<std::uint64_t>& frames);
  void apply_settled(const std::string& series, std::uint64_t number, Outcome outcome);
  void apply_closed(const std::string& series);
  bool release(const std::string& series, std::uint64_t number);
  void drop_settled_segments();
  Known& of(const std::string& series);

  const Settings settings_;
  FolderLock lock_;
  SegmentLog log_;
  mutable std::mutex mutex_;
  std::map<std::string, Known> series_;
  std::list<std::string> closed_;
  bool has_state_ = false;    // one was read
  bool needs_state_ = false;  // the newest segment has none yet
  // Where frames that wait are, and how many of them a segment has.
  std::map<std::string, std::unordered_map<std::uint64_t, std::uint64_t>> places_;
  std::map<std::uint64_t, std::uint64_t> waiting_in_;
};

}  // namespace superstep::edge
