// The accounts of several servers that shared one stream, as one: sums, gaps, what came to more than one.
//
// What counts is what their folders hold (summary.h), so a server that was killed is in it, too: with the
// frames whose answers are in its files, and no others.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "superstep/edge/stream/stream_account.h"

namespace superstep::edge {

// A server's part of a series.
struct SeriesShare {
  std::uint64_t announced = 0;
  std::vector<bool> seen;      // by frame
  std::vector<bool> answered;  // those with an answer in a file
  StreamAccount account;
  bool closed = false;  // its server said what it has; else it ended before: the answers speak for it
};

struct ServerShare {
  std::filesystem::path folder;
  std::map<std::string, SeriesShare> series;
  StreamAccount account;  // of its whole stream
  bool ended = false;     // it said so itself: there is an account
};

struct JointSeries {
  std::string name;
  std::uint64_t announced = 0;  // 0: no server that is left heard of it
  std::uint64_t seen = 0;       // frames that are in an account, each counted once
  std::uint64_t again = 0;      // of them in a second one, as of frames that were sent again after a kill
  std::uint64_t answered = 0;   // frames with an answer in a file
  std::uint64_t missing = 0;  // announced ones in no account; gaps before the last where none were announced
  std::vector<std::pair<std::uint64_t, std::uint64_t>> missing_ranges;  // the first 10,000
  StreamAccount account;                                                // of all servers
};

struct JointAccount {
  std::vector<ServerShare> servers;
  std::vector<JointSeries> series;
  StreamAccount account;  // sums of servers that have ended
  // What does not add up: a server whose own counts do not, or whose files hold other answers than it says;
  // empty: all does.
  std::vector<std::string> contradictions;
};

// Throws Error: not_found, bad_file, invalid_argument (a folder twice, servers that did not share a stream).
JointAccount join_accounts(const std::vector<std::filesystem::path>& folders);

}  // namespace superstep::edge
