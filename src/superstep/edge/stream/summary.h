// What a server says of a series, and of its stream, in files: SERIES.json beside the files with answers, and
// .account.json.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "superstep/edge/stream/series.h"
#include "superstep/edge/stream/stream_account.h"

namespace superstep::edge {

struct SeriesSummary {
  std::string name, model;
  std::uint64_t announced = 0;  // 0: it was not, or another server heard of it
  std::vector<bool> seen;       // by frame; only of a server that shares a stream
  StreamAccount account;        // of this series
  std::vector<std::string> files;
};

// `shared`: other servers have the rest of the stream: what came is said frame by frame, and what did not is
// no loss. Throws Error (io).
void write_series_summary(const std::filesystem::path& folder, const Series& series,
                          const StreamAccount& account, const std::string& model,
                          const std::vector<std::string>& files, bool shared);
void write_stream_account(const std::filesystem::path& folder, const StreamAccount& account);

// Throw Error (bad_file): not what the functions above write; (invalid_argument) of a server that does not
// share its stream.
SeriesSummary read_series_summary(const std::filesystem::path& file);
StreamAccount read_stream_account(const std::filesystem::path& file);
inline constexpr const char* stream_account_file = ".account.json";  // no series has such a name

}  // namespace superstep::edge
