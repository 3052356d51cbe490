// Stands in for libFuzzer where the compiler has none: FUZZER ROUNDS FOLDER feeds each file of the folder
// as it is, then ROUNDS mutations of them (bytes changed, pieces cut out, doubled or taken from another
// file). FUZZER ROUNDS FOLDER flips changes bytes alone, so that everything stays where the file says it is.
// FUZZER ROUNDS FOLDER deep FIRST also repeats pieces thousands of times and nests them, and goes on at
// mutation FIRST, where a call before it ended (tools/fuzz). The mutations are the same at every run. Says at
// its end how much memory it took, children too. SUPERSTEP_FUZZ_KEEP=FILE: what is being fed when a signal
// ends the process is written there.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/file.h"
#include "superstep/base/random.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);

namespace {

using superstep::RandomStream;

const std::string* fed = nullptr;  // now

extern "C" void keep_what_is_fed(int signal) {
  if (const char* file = std::getenv("SUPERSTEP_FUZZ_KEEP"); file && fed) {
    const int to = ::open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (to >= 0 && ::write(to, fed->data(), fed->size()) >= 0) ::close(to);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void feed(const std::string& text) {
  fed = &text;
  LLVMFuzzerTestOneInput(reinterpret_cast<const unsigned char*>(text.data()), text.size());
}

std::string some_piece(const std::string& text, RandomStream& random) {
  if (text.empty()) return {};
  const std::size_t start = random.below(text.size());
  return text.substr(start, 1 + random.below(32));
}

std::string mutated(std::string text, const std::string& other, RandomStream& random) {
  const std::size_t at = random.below(text.size() + 1);
  switch (random.below(4)) {
    case 0: return text.insert(at, 1, static_cast<char>(random.below(256)));
    case 1: return text.erase(at, 1 + random.below(16));
    case 2: return text.insert(at, some_piece(other, random));
    default:
      if (at < text.size()) text[at] = static_cast<char>(random.below(256));
      return text;
  }
}

// Long and deep: a piece as often as fits into 64 kB, once or with its end behind all of them.
std::string grown(std::string text, RandomStream& random) {
  const std::string piece = some_piece(text, random);
  if (piece.empty()) return text;
  const std::size_t times = (std::size_t{1} << random.below(17)) / piece.size() + 1;
  std::string many;
  for (std::size_t i = 0; i < times; ++i) many += piece;
  constexpr std::string_view openings = "[{(<", closings = "]})>";
  const std::size_t at = random.below(text.size() + 1);
  if (const std::size_t kind = openings.find(piece[0]);
      kind != std::string_view::npos && random.below(2) == 0)
    text.insert(at, std::string(times, closings[kind]));
  return text.insert(at, many);
}

// One to eight bytes changed: a bit, all bits, or to anything.
std::string flipped(std::string text, RandomStream& random) {
  for (std::uint64_t left = random.below(8) + 1; left > 0 && !text.empty(); --left) {
    char& byte = text[random.below(text.size())];
    switch (random.below(3)) {
      case 0: byte = static_cast<char>(byte ^ (1 << random.below(8))); break;
      case 1: byte = static_cast<char>(~byte); break;
      default: byte = static_cast<char>(random.below(256));
    }
  }
  return text;
}

long peak_megabytes(int whose) {
  rusage used{};
  getrusage(whose, &used);
  return used.ru_maxrss / 1024;
}

}  // namespace

int main(int count, char** arguments) {
  const bool flips = count == 4 && std::string(arguments[3]) == "flips";
  const bool deep = count == 5 && std::string(arguments[3]) == "deep";
  if (count != 3 && !flips && !deep)
    return std::fprintf(stderr, "usage: %s ROUNDS FOLDER [flips | deep FIRST]\n", arguments[0]), 2;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM})
    std::signal(signal, keep_what_is_fed);
  const std::uint64_t first = deep ? std::strtoull(arguments[4], nullptr, 10) : 0;
  std::vector<std::string> seeds;
  for (const auto& entry : std::filesystem::directory_iterator(arguments[2]))
    seeds.push_back(superstep::read_text_file(entry.path()));
  std::ranges::sort(seeds);  // folders are listed in no order
  if (seeds.empty()) return std::fprintf(stderr, "no seeds in %s\n", arguments[2]), 2;
  for (const std::string& seed : seeds) feed(seed);
  for (std::uint64_t round = first; round < first + std::strtoull(arguments[1], nullptr, 10); ++round) {
    RandomStream random(deep ? 2 : 1, round);
    std::string text = seeds[random.below(seeds.size())];
    if (flips) text = flipped(std::move(text), random);
    for (std::uint64_t i = 0; !flips && i <= random.below(4); ++i)
      text = mutated(std::move(text), seeds[random.below(seeds.size())], random);
    if (deep && random.below(8) == 0) text = grown(std::move(text), random);
    feed(text);
  }
  std::printf("%zu seeds, %s mutations; most memory at once %ld MB, of a child %ld MB\n", seeds.size(),
              arguments[1], peak_megabytes(RUSAGE_SELF), peak_megabytes(RUSAGE_CHILDREN));
}
