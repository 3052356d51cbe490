#include "superstep/file/atoms/ase_lmdb.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/file/records/lmdb_values.h"

namespace superstep::data {
namespace {

class Row {
 public:
  Row(Record record, std::string where) : record_(std::move(record)), where_(std::move(where)) {}

  // Null: it is not there, or is no numbers.
  const Tensor* find(const char* name) const {
    const RecordValue* value = find_value(record_, name);
    return value ? std::get_if<Tensor>(&value->value) : nullptr;
  }
  // `count` numbers, or as many as there are where it is 0.
  std::vector<double> numbers(const char* name, std::size_t count) const {
    const Tensor* tensor = find(name);
    if (!tensor) refuse(ErrorCode::bad_file, fmt::format("has no '{}'", name));
    const auto size = static_cast<std::size_t>(tensor->element_count());
    if (count > 0 && size != count)
      refuse(ErrorCode::bad_file, fmt::format("'{}' has {} numbers where {} are wanted", name, size, count));
    std::vector<double> values(size);
    for (std::size_t i = 0; i < size; ++i) values[i] = tensor->at(static_cast<std::int64_t>(i));
    return values;
  }
  std::vector<Cartesian> vectors(const char* name, std::size_t count) const {
    const std::vector<double> flat = numbers(name, 3 * count);
    std::vector<Cartesian> vectors;
    for (std::size_t i = 0; i < count; ++i)
      vectors.push_back({flat[3 * i], flat[3 * i + 1], flat[3 * i + 2]});
    return vectors;
  }
  [[noreturn]] void refuse(ErrorCode code, const std::string& message) const {
    throw Error(code, message, where_, "a row of ASE has numbers, positions, cell and pbc");
  }

 private:
  Record record_;
  std::string where_;
};

Configuration configuration_of(const Row& row) {
  Configuration configuration;
  for (const double number : row.numbers("numbers", 0)) {
    if (number < 1 || number > 1000 || number != std::floor(number))
      row.refuse(ErrorCode::bad_file, fmt::format("has an atom of element {}", number));
    configuration.elements.push_back(static_cast<int>(number));
  }
  if (configuration.elements.empty()) row.refuse(ErrorCode::bad_file, "has no atoms");
  configuration.positions = row.vectors("positions", configuration.elements.size());
  if (!row.find("pbc")) return configuration;
  const std::vector<double> periodic = row.numbers("pbc", 3);
  const auto axes = std::ranges::count_if(periodic, [](double axis) { return axis != 0; });
  if (axes != 0 && axes != 3)
    row.refuse(ErrorCode::unsupported, "is periodic along some axes alone, which is not supported");
  if (axes == 0) return configuration;
  const std::vector<Cartesian> edges = row.vectors("cell", 3);
  configuration.cell = Cell{edges[0], edges[1], edges[2]};
  return configuration;
}

Labels labels_of(const Row& row, const Configuration& configuration) {
  Labels labels;
  if (row.find("energy")) labels.energy = row.numbers("energy", 1)[0];
  if (row.find("forces")) labels.forces = row.vectors("forces", configuration.elements.size());
  if (row.find("stress") && configuration.cell)
    labels.virial = virial_of_stress(row.numbers("stress", 6), *configuration.cell);
  return labels;
}

std::int64_t number_of(const std::string& key, std::size_t at) {
  std::int64_t number = static_cast<std::int64_t>(at) + 1;
  std::from_chars(key.data(), key.data() + key.size(), number);
  return number;
}

}  // namespace

void for_ase_lmdb_frames(const std::filesystem::path& path, const std::function<bool(AseFrame frame)>& take) {
  const Lmdb base(path);
  const std::vector<LmdbEntry> samples = samples_of(base);
  InterruptCheck stop;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    stop.throw_if_due(path.string());
    const std::string where = fmt::format("{}: key '{}'", base.path().string(), printable(samples[i].key));
    const Row row(record_of_value(base.value(samples[i]), where), where);
    AseFrame frame{.id = number_of(samples[i].key, i)};
    frame.configuration = configuration_of(row);
    frame.labels = labels_of(row, frame.configuration);
    if (!take(std::move(frame))) break;
  }
  base.require_unchanged();
}

}  // namespace superstep::data
