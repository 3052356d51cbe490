#include "superstep/lab/bench/data_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/base/system/stable_file.h"
#include "superstep/base/thread_pool.h"
#include "superstep/file/source/joined_source.h"
#include "superstep/file/source/order.h"
#include "superstep/file/source/paths.h"
#include "superstep/file/source/sample_rows.h"
#include "superstep/lab/bench/jpeg_floor.h"
#include "superstep/lab/bench/peers.h"

namespace superstep::lab {
namespace {

namespace fs = std::filesystem;

constexpr int rounds = 5;                  // in turn, of every contender: chosen
constexpr std::size_t piece = 1 << 20;     // bytes that pread() and memcpy() take at a time: chosen
constexpr std::size_t most_jpegs = 256;    // that are held in memory to be decoded: chosen
constexpr std::int64_t first_batches = 8;  // a thread, to see how many samples a round can take: chosen

std::vector<fs::path> files_of(const std::string& given) {
  std::vector<fs::path> files;
  for (const fs::path& path : data::named_paths(given)) {
    if (!fs::is_directory(path)) files.push_back(path);
    if (fs::is_directory(path))
      for (const auto& entry : fs::recursive_directory_iterator(path))
        if (entry.is_regular_file()) files.push_back(entry.path());
  }
  return files;
}

// What is measured of a source, and the memory that it goes to.
class Readers {
 public:
  Readers(const data::SampleSource& source, const DataBenchSettings& settings)
      : source_(source), batch_(settings.batch), pool_(settings.threads) {
    samples_ = data::usual_rows(source);
    for (std::size_t i = 0; i < source.arrays().size(); ++i) {
      const data::SourceArray& array = source.arrays()[i];
      if (array.single || array.rows != samples_) continue;
      arrays_.push_back(i);
      row_bytes_ += array.row_bytes();
    }
    if (arrays_.empty() || samples_ == 0)
      throw Error(ErrorCode::bad_file, "holds no samples to read", settings.path);
    files_ = files_of(settings.path);
    memory_.resize(static_cast<std::size_t>(settings.threads));
  }

  std::int64_t samples() const { return samples_; }
  std::size_t row_bytes() const { return row_bytes_; }
  ThreadPool& pool() { return pool_; }
  double file_bytes() const {
    double bytes = 0;
    for (const fs::path& file : files_) bytes += static_cast<double>(fs::file_size(file));
    return bytes;
  }

  // These samples, batch by batch; seconds.
  double read(std::span<const std::int64_t> order) {
    const auto count = static_cast<std::int64_t>(order.size());
    const Stopwatch watch;
    pool_.parallel_for((count + batch_ - 1) / batch_, [&](std::int64_t i, int thread) {
      const auto first = static_cast<std::size_t>(i * batch_);
      const std::size_t some = std::min(static_cast<std::size_t>(batch_), order.size() - first);
      std::byte* at = memory_of(thread, static_cast<std::size_t>(batch_) * row_bytes_);
      std::vector<data::RowsTo> to;
      for (const std::size_t array : arrays_) {
        to.push_back({array, at});
        at += some * source_.arrays()[array].row_bytes();
      }
      source_.read(order.subspan(first, some), to);
    });
    return watch.seconds();
  }

  // Bytes per second of the files, as far as `most` bytes go.
  double pread_rate(double most) {
    std::atomic<std::int64_t> total = 0;
    const Stopwatch watch;
    for (const fs::path& path : files_) {
      const StableFile file(path);
      const auto pieces = static_cast<std::int64_t>((file.size() + piece - 1) / piece);
      pool_.parallel_for(pieces, [&](std::int64_t i, int thread) {
        const std::uint64_t begin = static_cast<std::uint64_t>(i) * piece;
        const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(piece, file.size() - begin));
        file.read(begin, {memory_of(thread, piece), size});
        total += static_cast<std::int64_t>(size);
      });
      if (static_cast<double>(total) > most) break;
    }
    return static_cast<double>(total) / watch.seconds();
  }

  // Bytes per second from memory to memory, of as many as the samples are, out of more than a cache holds.
  double copy_rate(double bytes) {
    constexpr std::size_t from_bytes = 256 << 20;
    if (from_.empty()) from_.resize(from_bytes, std::byte{1});
    const auto pieces = std::max<std::int64_t>(1, static_cast<std::int64_t>(bytes / piece));
    const Stopwatch watch;
    pool_.parallel_for(pieces, [&](std::int64_t i, int thread) {
      const std::size_t begin = static_cast<std::size_t>(i) * piece % from_bytes;
      std::memcpy(memory_of(thread, piece), from_.data() + begin, piece);
    });
    return static_cast<double>(pieces) * piece / watch.seconds();
  }

 private:
  // Of one thread, used again: a model's batches are, too.
  std::byte* memory_of(int thread, std::size_t bytes) {
    std::vector<std::byte>& own = memory_[static_cast<std::size_t>(thread)];
    if (own.size() < bytes) own.resize(bytes);
    return own.data();
  }

  const data::SampleSource& source_;
  std::int64_t batch_, samples_ = 0;
  std::vector<std::size_t> arrays_;
  std::size_t row_bytes_ = 0;
  ThreadPool pool_;
  std::vector<fs::path> files_;
  std::vector<std::vector<std::byte>> memory_;  // by thread
  std::vector<std::byte> from_;
};

void add(DataRates& rates, double samples, double bytes, double seconds) {
  rates.samples.push_back(samples / seconds);
  rates.bytes.push_back(bytes / seconds);
}

// As many as a round has time for: all, or the first so many.
std::int64_t samples_of_round(Readers& readers, const DataBenchSettings& settings) {
  std::vector<std::int64_t> few(static_cast<std::size_t>(
      std::min(readers.samples(), first_batches * settings.batch * settings.threads)));
  std::iota(few.begin(), few.end(), 0);
  readers.read(few);  // what is done once, and pages that are not in memory yet
  const double each = readers.read(few) / static_cast<double>(few.size());
  const double fitting = settings.seconds / rounds / std::max(each, 1e-9);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(fitting), static_cast<std::int64_t>(few.size()),
                                  readers.samples());
}

void add_jpeg_round(DataRates& rates, const std::vector<std::vector<std::byte>>& jpegs, std::int64_t count,
                    ThreadPool& pool) {
  if (jpegs.empty()) return;
  std::vector<std::vector<unsigned char>> pixels(static_cast<std::size_t>(pool.threads()));
  const Stopwatch watch;
  pool.parallel_for(count, [&](std::int64_t i, int thread) {
    decode_with_libjpeg(jpegs[static_cast<std::size_t>(i) % jpegs.size()],
                        pixels[static_cast<std::size_t>(thread)]);
  });
  rates.samples.push_back(static_cast<double>(count) / watch.seconds());
}

// Batches in a row, as many as a round of ours has samples.
void add_peer_round(DataRates& rates, Peer& peer, const DataBenchSettings& settings, std::int64_t samples,
                    double row_bytes) {
  const std::int64_t batches = std::max<std::int64_t>(1, samples / settings.batch);
  const auto count = static_cast<double>(batches * settings.batch);
  add(rates, count, count * row_bytes, peer.run(batches));
}

std::vector<std::unique_ptr<Peer>> open_peers(const DataBenchSettings& settings, DataBench& bench) {
  std::vector<std::unique_ptr<Peer>> peers;
  for (const std::string& name : settings.against) {
    std::vector<std::string> arguments{"--reader",  name,
                                       "--batch",   std::to_string(settings.batch),
                                       "--threads", std::to_string(settings.threads)};
    for (const fs::path& path : data::named_paths(settings.path))
      arguments.push_back(fs::absolute(path).string());
    auto peer = std::make_unique<Peer>(settings.python, name, "data_peer.py", arguments);
    bench.peers.push_back({.what = peer->is_ready() ? peer->name() : name, .why_not = peer->why_not()});
    if (peer->is_ready()) peer->run(2);
    peers.push_back(std::move(peer));
  }
  return peers;
}

}  // namespace

const std::vector<std::string>& data_peers() {
  static const std::vector<std::string> names{"dataloader", "webdataset"};
  return names;
}

DataBench bench_data(const data::SampleSource& source, const DataBenchSettings& settings) {
  Readers readers(source, settings);
  DataBench bench{.samples = readers.samples(), .file_bytes = readers.file_bytes()};
  bench.sample_bytes = static_cast<double>(readers.row_bytes());
  bench.measured = samples_of_round(readers, settings);
  const auto count = static_cast<double>(bench.measured), bytes = count * bench.sample_bytes;
  std::vector<std::int64_t> in_order(static_cast<std::size_t>(bench.measured));
  std::iota(in_order.begin(), in_order.end(), 0);
  constexpr std::int64_t buffer =
      4096;  // samples that training draws from, at most (SampleRows): of packed files
  std::vector<std::int64_t> shuffled = data::epoch_order(bench.samples, 1, 0, {source.shards(), buffer});
  shuffled.resize(in_order.size());
  const auto jpegs = jpegs_in(data::named_paths(settings.path), most_jpegs);
  const auto peers = open_peers(settings, bench);
  InterruptCheck stop;
  for (int round = 0; round < rounds; ++round) {
    bench.pread.bytes.push_back(readers.pread_rate(bytes));
    bench.copy.bytes.push_back(readers.copy_rate(bytes));
    add(bench.in_order, count, bytes, readers.read(in_order));
    add(bench.shuffled, count, bytes, readers.read(shuffled));
    add_jpeg_round(bench.jpeg, jpegs, bench.measured, readers.pool());
    for (std::size_t i = 0; i < peers.size(); ++i)
      if (peers[i]->is_ready())
        add_peer_round(bench.peers[i], *peers[i], settings, bench.measured, bench.sample_bytes);
    stop.throw_if_due(settings.path);
  }
  return bench;
}

}  // namespace superstep::lab
