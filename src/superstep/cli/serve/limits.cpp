#include "superstep/cli/serve/limits.h"

#include <fmt/format.h>

#include "superstep/cli/command.h"

namespace superstep::cli {
namespace {

edge::QueueFull queue_full_of(const std::string& name) {
  return name == "drop-old"   ? edge::QueueFull::drop_oldest
         : name == "drop-new" ? edge::QueueFull::refuse
                              : edge::QueueFull::wait;
}

}  // namespace

edge::BatcherSettings batcher_of(const ServeArguments& a) {
  return {.max_batch = a.max_batch,
          .max_delay = edge::Nanoseconds(static_cast<std::int64_t>(a.max_delay * 1e3)),
          .queue_rows = a.queue,
          .queue_bytes = bytes_of(a.memory),
          .when_full = queue_full_of(a.queue_full)};
}

void declare_queue(CLI::App& command, ServeArguments& a) {
  command.add_option("--max-batch", a.max_batch, "rows that are computed together")
      ->type_name("N")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command
      .add_option("--max-delay", a.max_delay,
                  "microseconds that an idle worker waits for more rows than there are")
      ->type_name("US")
      ->check(number_from(0, 1e7))
      ->capture_default_str();
  command.add_option("--queue", a.queue, "rows that may wait, of each model")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  command
      .add_option(
          "--queue-full", a.queue_full,
          "block: hold streams back, refuse requests (429); drop-new: refuse both; drop-old: drop the oldest")
      ->type_name("HOW")
      ->check(CLI::IsMember({"block", "drop-new", "drop-old"}))
      ->capture_default_str();
  command
      .add_option(
          "--deadline", a.deadline,
          "milliseconds after which a waiting request is given up (504), unless it sets 'timeout'; 0: none")
      ->type_name("MS")
      ->check(number_from(0, 3.6e6))
      ->capture_default_str();
  command.add_flag("--allow-not-finite", a.allow_not_finite,
                   "end with 0 where answers were NaN or infinite, too; they are counted in any case");
  command.add_flag("--reproducible", a.reproducible,
                   "compute every row alone: its answer has the same bits whatever came beside it");
  command
      .add_option("--workers", a.workers,
                  "workers that compute side by side, each with its own plans; they share --threads")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
}

void declare_limits(CLI::App& command, ServeArguments& a) {
  command.add_option("--memory", a.memory, "bytes that all requests under way may take together")
      ->type_name("BYTES")
      ->check(bytes())
      ->capture_default_str();
  command.add_option("--body", a.body, "the largest request")
      ->type_name("BYTES")
      ->check(bytes())
      ->capture_default_str();
  command
      .add_option("--connections", a.connections,
                  "connections at the same time; one more replaces the slowest or the longest idle one")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      .add_option("--peer-connections", a.peer_connections,
                  "connections per address (default: half of --connections); a proxy is one address")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20));
  command
      .add_option("--peer-requests", a.peer_requests,
                  "requests per address that are under way at the same time")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command.add_option("--peer-memory", a.peer_memory, "share of --memory per address (default: half)")
      ->type_name("BYTES")
      ->check(bytes());
  command
      .add_option("--header-time", a.header_time,
                  "seconds that a request's header may take, and its body beside one for each MB")
      ->type_name("S")
      ->check(number_from(0.01, 3600))
      ->capture_default_str();
  command
      .add_option("--idle-time", a.idle_time, "seconds after which a connection that asks nothing is closed")
      ->type_name("S")
      ->check(number_from(0.01, 1e6))
      ->capture_default_str();
  command.add_option("--http-threads", a.http_threads, "threads that read requests and write answers")
      ->type_name("N")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      .add_option("--lame-duck", a.lame_duck,
                  "seconds in which it reports 'not ready' but still answers, before it stops")
      ->type_name("S")
      ->check(number_from(0, 3600));
  command.add_option("--drain", a.drain, "seconds to answer what waits when it is asked to stop")
      ->type_name("S")
      ->check(number_from(0, 3600))
      ->capture_default_str();
  command.add_option("--for", a.seconds, "stop by itself after so many seconds")
      ->type_name("S")
      ->check(number_from(0, 1e9));
}

}  // namespace superstep::cli
