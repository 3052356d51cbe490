// The files that `superstep show` draws, behind one interface: named arrays that are read a block at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/file/hdf5/hdf5.h"

namespace superstep::show {

struct SampleFacts;  // show/sample_arrays.h

class ArrayFile {
 public:
  virtual ~ArrayFile() = default;

  // Sorted by name. A complex data set has one more, innermost axis of two: real, imaginary.
  virtual std::vector<data::DataSetInfo> data_sets() const = 0;

  // A block of a numeric data set; `first` and `count` have an entry for each axis, without the one that
  // complex numbers add. Throws Error that names the data set.
  virtual Tensor read_block(const data::DataSetInfo& info, ElementType type,
                            std::span<const std::int64_t> first,
                            std::span<const std::int64_t> count) const = 0;

  virtual std::vector<std::string> read_strings(const data::DataSetInfo& info) const = 0;

  // Attributes of a data set; "" is the file itself.
  virtual std::map<std::string, data::Attribute> attributes(const std::string& name) const = 0;

  // The file as a whole in one line; empty where its list of arrays says it all.
  virtual std::string summary() const { return {}; }

  // So many values of a data set say what the others are like: less where reading them is much work.
  virtual std::int64_t most_looked_at(const data::DataSetInfo&) const { return std::int64_t{1} << 22; }

  // Of a source of samples; null: it is a file of arrays.
  virtual const SampleFacts* sample_facts() const { return nullptr; }
};

std::string to_text(const data::Attribute& value);

// The attribute as text; empty when there is none.
std::string attribute_text(const std::map<std::string, data::Attribute>& attributes, const std::string& name);

}  // namespace superstep::show
