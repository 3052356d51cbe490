// A sample as a record: named values, as archives, TFRecord and JSON lines have them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "superstep/base/tensor.h"

namespace superstep::data {

// Bytes in a form of their own: a picture, a text.
using EncodedBytes = std::vector<std::byte>;

struct RecordValue {
  std::string name;
  std::variant<Tensor, EncodedBytes> value;
};

using Record = std::vector<RecordValue>;

// The first of this name; null: there is none.
const RecordValue* find_value(const Record& record, std::string_view name);

}  // namespace superstep::data
