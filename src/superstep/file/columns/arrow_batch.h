// A batch of rows in Arrow's messages: its buffers, which lie in the file as they are or packed one by one.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/system/stable_file.h"
#include "superstep/file/columns/arrow_schema.h"
#include "superstep/file/packing/packing.h"

namespace superstep::data::columns {

struct ArrowBuffer {
  std::uint64_t begin = 0, size = 0;  // in the file
};

struct ArrowBatch {
  std::int64_t first = 0, rows = 0;
  std::vector<std::int64_t> missing;  // by node
  std::vector<ArrowBuffer> buffers;
  bool is_packed = false;
  Packing packing = Packing::none;
};

// Of the message whose header begins with `table` and whose body is at `body`, `size` bytes long. Throws
// Error (bad_file) where it does not fit the schema, (unsupported) where it is packed in a way not known.
ArrowBatch read_arrow_batch(const FlatTable& table, const ArrowSchema& schema, std::uint64_t body,
                            std::uint64_t size, const std::string& where);

// Parts of the buffers of a batch. What was unpacked is kept as long as this is.
class BatchReader {
 public:
  BatchReader(const StableFile& file, const ArrowBatch& batch, const std::string& where)
      : file_(file), batch_(batch), where_(where) {}

  // Throws Error (bad_file) where the buffer is shorter.
  std::vector<std::byte> part(std::size_t buffer, std::uint64_t offset, std::uint64_t size);
  // Bits `first` to `first + count` of a buffer of bits.
  std::vector<bool> bits(std::size_t buffer, std::int64_t first, std::int64_t count);
  // `count` + 1 offsets from `first` on, none smaller than the one before.
  std::vector<std::int64_t> offsets(std::size_t buffer, bool wide, std::int64_t first, std::int64_t count);
  // Whether each of these is there; nothing: all are.
  std::vector<bool> there(const ArrowNode& node, std::int64_t first, std::int64_t count);

 private:
  const std::vector<std::byte>& unpacked(std::size_t buffer);
  [[noreturn]] void damaged() const;

  const StableFile& file_;
  const ArrowBatch& batch_;
  const std::string& where_;
  std::map<std::size_t, std::vector<std::byte>> unpacked_;
};

}  // namespace superstep::data::columns
