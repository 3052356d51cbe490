#include "superstep/edge/protocol/request_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/edge/protocol/datatype.h"

namespace superstep::edge {
namespace {

std::vector<std::string> names_of(const std::vector<ServedPort>& ports) {
  std::vector<std::string> names;
  for (const ServedPort& port : ports) names.push_back(port.name);
  return names;
}

std::size_t port_index(const std::vector<ServedPort>& ports, const std::string& name, const char* kind) {
  const auto found = std::ranges::find(ports, name, &ServedPort::name);
  if (found == ports.end())
    refuse_request(fmt::format("the model has no {} '{}'", kind, name), {},
                   unknown_name_hint(name, names_of(ports)));
  return static_cast<std::size_t>(found - ports.begin());
}

// The rows that a shape says; refuses every other shape than the port's.
std::int64_t rows_of(const ServedPort& port, bool batched, const std::vector<std::int64_t>& extents,
                     const std::string& where) {
  const std::vector<std::int64_t>& row = port.shape.extents();
  const std::size_t skip = batched ? 1 : 0;
  const bool fits = extents.size() == row.size() + skip &&
                    std::equal(row.begin(), row.end(), extents.begin() + static_cast<std::ptrdiff_t>(skip));
  if (!fits || (batched && extents[0] < 1)) {
    std::string wanted = to_string(port.shape);
    if (batched) wanted = row.empty() ? "[N]" : "[N," + wanted.substr(1);
    refuse_request(fmt::format("has the shape [{}]; the model takes {}", fmt::join(extents, ","), wanted),
                   where);
  }
  return batched ? extents[0] : 1;
}

}  // namespace

void refuse_request(std::string message, std::string where, std::string hint) {
  throw Error(ErrorCode::invalid_argument, std::move(message), std::move(where), std::move(hint));
}

std::size_t InputCheck::take(const std::string& name, std::string_view datatype,
                             const std::vector<std::int64_t>& extents) {
  const std::size_t index = input_index(ports_, name);
  const std::string where = fmt::format("input '{}'", name);
  if (std::exchange(seen_[index], 1) != 0) refuse_request("is given twice", where);
  const ServedPort& port = ports_.inputs[index];
  if (datatype != datatype_of(port.element))
    refuse_request(fmt::format("is {}; the model takes {}", datatype, datatype_of(port.element)), where);
  const std::int64_t own = rows_of(port, ports_.batched, extents, where);
  if (rows_ >= 0 && own != rows_)
    refuse_request(fmt::format("has {} rows where another input has {}", own, rows_), where);
  rows_ = own;
  return index;
}

std::int64_t InputCheck::rows() const {
  for (std::size_t i = 0; i < seen_.size(); ++i)
    if (!seen_[i]) refuse_request("is missing", fmt::format("input '{}'", ports_.inputs[i].name));
  return rows_;
}

Tensor input_tensor(const ServedPorts& ports, std::size_t index, std::int64_t rows) {
  std::vector<std::int64_t> extents = ports.inputs[index].shape.extents();
  if (ports.batched) extents.insert(extents.begin(), rows);
  return {ports.inputs[index].element, Shape(std::move(extents))};
}

std::size_t input_index(const ServedPorts& ports, const std::string& name) {
  return port_index(ports.inputs, name, "input");
}
std::size_t output_index(const ServedPorts& ports, const std::string& name) {
  return port_index(ports.outputs, name, "output");
}

void check_booleans(const Tensor& tensor, const std::string& where) {
  if (tensor.type() != ElementType::boolean) return;
  const std::byte* bytes = tensor.bytes();
  if (std::any_of(bytes, bytes + tensor.byte_count(), [](std::byte b) { return b > std::byte{1}; }))
    refuse_request("holds bytes that are neither 0 nor 1", where);
}

}  // namespace superstep::edge
