// Stands in for libFuzzer where the compiler has none: FUZZER ROUNDS FOLDER feeds each file of the folder
// as it is, then ROUNDS mutations of them (bytes changed, pieces cut out, doubled or taken from another
// file). FUZZER ROUNDS FOLDER flips changes bytes alone, so that everything stays where the file says it is.
// The mutations are the same at every run. Says at its end how much memory it took, children too.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "superstep/base/file.h"
#include "superstep/base/random.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);

namespace {

using superstep::RandomStream;

void feed(const std::string& text) {
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
  if (count != 3 && !flips) return std::fprintf(stderr, "usage: %s ROUNDS FOLDER [flips]\n", arguments[0]), 2;
  std::vector<std::string> seeds;
  for (const auto& entry : std::filesystem::directory_iterator(arguments[2]))
    seeds.push_back(superstep::read_text_file(entry.path()));
  std::ranges::sort(seeds);  // folders are listed in no order
  if (seeds.empty()) return std::fprintf(stderr, "no seeds in %s\n", arguments[2]), 2;
  for (const std::string& seed : seeds) feed(seed);
  for (std::uint64_t round = 0; round < std::strtoull(arguments[1], nullptr, 10); ++round) {
    RandomStream random(1, round);
    std::string text = seeds[random.below(seeds.size())];
    if (flips) text = flipped(std::move(text), random);
    for (std::uint64_t i = 0; !flips && i <= random.below(4); ++i)
      text = mutated(std::move(text), seeds[random.below(seeds.size())], random);
    feed(text);
  }
  std::printf("%zu seeds, %s mutations; most memory at once %ld MB, of a child %ld MB\n", seeds.size(),
              arguments[1], peak_megabytes(RUSAGE_SELF), peak_megabytes(RUSAGE_CHILDREN));
}
