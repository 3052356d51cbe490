// Any journal is read, gone on with and read again, or refused with an Error; frames that wait are replayed
// or named as lost, one by one. Inputs that begin with 'r' are records (kind, length of two bytes, contents)
// that are written with right sums, so that what is in them is read; others are a segment's file as it is.
#include <cstdlib>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/edge/journal/journal.h"
#include "tests/fuzz/input_folder.h"

namespace {

using namespace superstep;

void write_records(const std::filesystem::path& folder, std::span<const std::byte> bytes) {
  edge::SegmentLog log(folder, std::size_t{1} << 16);
  log.begin_segment();
  while (bytes.size() >= 3) {
    const auto length =
        std::min<std::size_t>(bytes.size() - 3, std::to_integer<std::size_t>(bytes[1]) +
                                                    256 * std::to_integer<std::size_t>(bytes[2]));
    const std::span<const std::byte> contents[] = {bytes.subspan(3, length)};
    if (log.has_room(length)) log.append(std::to_integer<std::uint8_t>(bytes[0]), contents);
    bytes = bytes.subspan(3 + length);
  }
  log.commit();
}

void go_on_with(const edge::Journal::Settings& settings) {
  edge::Journal journal(settings);
  std::size_t waiting = 0, found = 0;
  for (const auto& [name, known] : journal.known()) waiting += known.waiting.size();
  journal.replay([&](const edge::FrameParts&) { ++found; },
                 [&](const std::string&, std::uint64_t) { ++found; });
  if (found != waiting) std::abort();
  const std::string pixels = "pixels";
  journal.begin("more", 3);
  journal.frame("more", 1, {std::as_bytes(std::span(pixels))});
  journal.commit();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const InputFolder folder(data, 0, {});
  const edge::Journal::Settings settings{
      .folder = folder.path() / "kept", .results = folder.path(), .segment_bytes = std::size_t{1} << 16};
  try {
    std::filesystem::create_directories(settings.folder);
    if (size > 0 && data[0] == 'r')
      write_records(settings.folder, std::as_bytes(std::span(data + 1, size - 1)));
    else
      write_file_atomically(settings.folder / "00000001.journal",
                            std::string_view(reinterpret_cast<const char*>(data), size));
    for (int again = 0; again < 2; ++again) go_on_with(settings);
  } catch (const Error&) {
  }
  return 0;
}
