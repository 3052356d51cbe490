// How fast samples come out of files beside the bytes of the same files: data_rates PATH [--threads N]. A
// line each for the bytes as pread() gives them in pieces of a megabyte, for rows in their order, and for
// rows in an order of an epoch, in batches; of each the best of a few rounds, so that all are of the page
// cache where the files fit there.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <numeric>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/thread_pool.h"
#include "superstep/file/source/forms.h"
#include "superstep/file/source/order.h"
#include "superstep/file/source/paths.h"

namespace superstep {
namespace {

constexpr int rounds = 3;
constexpr std::size_t piece = 1 << 20;

double best_seconds(const std::function<void()>& work) {
  double best = 1e300;
  for (int round = 0; round < rounds; ++round) {
    const Stopwatch watch;
    work();
    best = std::min(best, watch.seconds());
  }
  return best;
}

std::vector<std::filesystem::path> files_of(const std::string& given) {
  std::vector<std::filesystem::path> files;
  for (const std::filesystem::path& path : data::named_paths(given)) {
    if (!std::filesystem::is_directory(path)) files.push_back(path);
    if (std::filesystem::is_directory(path))
      for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
        if (entry.is_regular_file()) files.push_back(entry.path());
  }
  return files;
}

// All bytes of the files, pieces on all threads.
double read_bytes(const std::vector<std::filesystem::path>& files, ThreadPool& pool) {
  std::atomic<std::int64_t> total = 0;
  for (const std::filesystem::path& file : files) {
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) throw Error(ErrorCode::io, "cannot be opened", file.string());
    const auto size = std::filesystem::file_size(file);
    pool.parallel_for(static_cast<std::int64_t>((size + piece - 1) / piece), [&](std::int64_t i, int) {
      static thread_local std::vector<char> buffer(piece);
      total += ::pread(descriptor, buffer.data(), piece, i * static_cast<std::int64_t>(piece));
    });
    ::close(descriptor);
  }
  return static_cast<double>(total);
}

// All rows of the arrays that have as many as the first, batch by batch on all threads.
double read_rows(const data::SampleSource& source, const std::vector<std::int64_t>& order, std::int64_t batch,
                 ThreadPool& pool) {
  std::vector<std::size_t> arrays;
  double row_bytes = 0;
  for (std::size_t i = 0; i < source.arrays().size(); ++i) {
    const data::SourceArray& array = source.arrays()[i];
    if (array.single || array.rows != static_cast<std::int64_t>(order.size())) continue;
    arrays.push_back(i);
    row_bytes += static_cast<double>(array.row_bytes());
  }
  const auto count = static_cast<std::int64_t>(order.size());
  pool.parallel_for((count + batch - 1) / batch, [&](std::int64_t i, int) {
    const std::int64_t first = i * batch, rows = std::min(batch, count - first);
    static thread_local std::vector<std::vector<std::byte>> memory;
    memory.resize(arrays.size());
    std::vector<data::RowsTo> to;
    for (std::size_t k = 0; k < arrays.size(); ++k) {
      memory[k].resize(source.arrays()[arrays[k]].row_bytes() * static_cast<std::size_t>(batch));
      to.push_back({arrays[k], memory[k].data()});
    }
    source.read(std::span(order).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(rows)),
                to);
  });
  return row_bytes * static_cast<double>(count);
}

void measure(const std::string& path, int threads, std::int64_t batch) {
  ThreadPool pool(threads);
  const std::vector<std::filesystem::path> files = files_of(path);
  const std::unique_ptr<data::SampleSource> source =
      data::open_source(path, {.wanted = {}, .options = {{"fit", "first"}}});
  std::int64_t rows = 0;
  for (const data::SourceArray& array : source->arrays()) rows = std::max(rows, array.rows);
  std::vector<std::int64_t> in_order(static_cast<std::size_t>(rows));
  std::iota(in_order.begin(), in_order.end(), 0);
  const std::vector<std::int64_t> shuffled = data::epoch_order(rows, 1, 0, {source->shards(), 4096});
  double bytes = 0;
  const auto line = [&](const char* what, double seconds, double compared) {
    fmt::print("{:28} {:7.2f} GB in {:8.3f} s {:8.2f} GB/s {}\n", what, bytes / 1e9, seconds,
               bytes / seconds / 1e9,
               compared > 0 ? fmt::format("{:.2f} of pread's", bytes / seconds / compared) : std::string());
  };
  const double of_bytes = best_seconds([&] { bytes = read_bytes(files, pool); });
  const double rate = bytes / of_bytes;
  line("bytes by pread", of_bytes, 0);
  using Order = std::pair<const char*, const std::vector<std::int64_t>*>;
  for (const auto& [what, order] : {Order("rows in order", &in_order), Order("rows shuffled", &shuffled)}) {
    const double seconds = best_seconds([&] { bytes = read_rows(*source, *order, batch, pool); });
    line(what, seconds, rate);
    fmt::print("{:28} {:.4g} samples/s\n", "", static_cast<double>(rows) / seconds);
  }
}

}  // namespace
}  // namespace superstep

int main(int argc, char** argv) {
  CLI::App app("samples out of files beside the bytes of the files");
  std::string path;
  int threads = 1;
  std::int64_t batch = 64;
  app.add_option("PATH", path, "what --data takes")->required();
  app.add_option("--threads", threads)->capture_default_str();
  app.add_option("--batch", batch, "samples read at a time")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    superstep::measure(path, threads, batch);
  } catch (const superstep::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
