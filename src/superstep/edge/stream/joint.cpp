#include "superstep/edge/stream/joint.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "superstep/base/error.h"
#include "superstep/edge/stream/frame.h"
#include "superstep/edge/stream/series.h"
#include "superstep/edge/stream/summary.h"
#include "superstep/file/hdf5/hdf5.h"

namespace superstep::edge {
namespace {

namespace fs = std::filesystem;

std::uint64_t count_of(const std::vector<bool>& bits) {
  return static_cast<std::uint64_t>(std::ranges::count(bits, true));
}

// "scan-7" of "scan-7-0012.h5"; empty: no file of answers.
std::string series_of(const fs::path& file) {
  const std::string stem = file.stem().string();
  const std::size_t dash = stem.rfind('-');
  constexpr std::size_t fewest_figures = 4;
  const bool good = file.extension() == ".h5" && dash != std::string::npos && dash > 0 &&
                    stem.size() - dash > fewest_figures &&
                    stem.find_first_not_of("0123456789", dash + 1) == std::string::npos;
  return good ? stem.substr(0, dash) : "";
}

void read_answered(const fs::path& file, SeriesShare& share) {
  const data::Hdf5File answers(file);
  const Tensor frames = answers.read("frame", ElementType::u64);
  for (const std::uint64_t frame : frames.as<std::uint64_t>()) {
    if (frame >= most_frames) throw Error(ErrorCode::bad_file, "has a number that is none", file.string());
    if (frame >= share.answered.size()) share.answered.resize(frame + 1);
    share.answered[frame] = true;
  }
}

ServerShare read_server(const fs::path& folder) {
  if (!fs::is_directory(folder))
    throw Error(ErrorCode::not_found, "is no folder", folder.string(), "give what servers had as --write");
  ServerShare server{.folder = folder};
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.insert(entry.path());
  for (const fs::path& file : files) {
    if (file.filename() == stream_account_file) {
      server.account = read_stream_account(file);
      server.ended = true;
    } else if (file.extension() == ".json") {
      SeriesSummary summary = read_series_summary(file);
      SeriesShare& share = server.series[summary.name];
      share.announced = summary.announced;
      share.seen = std::move(summary.seen);
      share.account = summary.account;
      share.closed = true;
    } else if (const std::string name = series_of(file); !name.empty()) {
      read_answered(file, server.series[name]);
    }
  }
  for (auto& [name, share] : server.series) {
    if (share.closed) continue;
    share.seen = share.answered;
    share.account.received = share.account.of(Outcome::served) = count_of(share.answered);
  }
  return server;
}

void check(const ServerShare& server, std::vector<std::string>& contradictions) {
  const auto say = [&](const std::string& what) {
    contradictions.push_back(fmt::format("{}: {}", server.folder.string(), what));
  };
  for (const auto& [name, share] : server.series) {
    const std::uint64_t seen = count_of(share.seen);
    if (!share.account.balances() || share.account.received != seen + share.account.duplicate)
      say(fmt::format("the counts of {} do not add up", name));
    if (const std::uint64_t answered = count_of(share.answered), served = share.account.of(Outcome::served);
        answered != served)
      say(fmt::format("{} frames of {} were served, and its files have answers to {}", served, name,
                      answered));
  }
  if (server.ended && !server.account.balances()) say("the counts of its stream do not add up");
}

// Adds a server's frames to the series'; what is there already is counted.
std::uint64_t unite(std::vector<bool>& all, const std::vector<bool>& more) {
  std::uint64_t again = 0;
  if (more.size() > all.size()) all.resize(more.size());
  for (std::size_t frame = 0; frame < more.size(); ++frame) {
    again += more[frame] && all[frame];
    all[frame] = all[frame] || more[frame];
  }
  return again;
}

JointSeries joined(const std::string& name, const std::vector<ServerShare>& servers) {
  JointSeries joint{.name = name};
  std::vector<bool> seen, answered;
  for (const ServerShare& server : servers) {
    const auto found = server.series.find(name);
    if (found == server.series.end()) continue;
    const SeriesShare& share = found->second;
    if (joint.announced > 0 && share.announced > 0 && share.announced != joint.announced)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("was announced with {} frames here and with {} elsewhere", share.announced,
                              joint.announced),
                  (server.folder / name).string(), "servers of one stream have the same series");
    joint.announced = std::max(joint.announced, share.announced);
    joint.again += unite(seen, share.seen);
    unite(answered, share.answered);
    joint.account += share.account;
  }
  Series series(name);
  series.announce(joint.announced);
  for (std::size_t frame = 0; frame < seen.size(); ++frame)
    if (seen[frame]) series.add(frame);
  constexpr std::size_t most_ranges = 10'000;
  joint.seen = series.seen();
  joint.answered = count_of(answered);
  joint.missing = series.missing();
  joint.missing_ranges = series.missing_ranges(most_ranges);
  return joint;
}

}  // namespace

JointAccount join_accounts(const std::vector<fs::path>& folders) {
  JointAccount joint;
  std::set<fs::path> known;
  std::set<std::string> names;
  for (const fs::path& folder : folders) {
    joint.servers.push_back(read_server(folder));
    const ServerShare& server = joint.servers.back();
    if (!known.insert(fs::canonical(folder)).second)
      throw Error(ErrorCode::invalid_argument, "is given twice", folder.string());
    for (const auto& [name, share] : server.series) names.insert(name);
    if (server.ended) joint.account += server.account;
    check(server, joint.contradictions);
  }
  for (const std::string& name : names) joint.series.push_back(joined(name, joint.servers));
  return joint;
}

}  // namespace superstep::edge
