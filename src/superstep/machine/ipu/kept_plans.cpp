#include "superstep/machine/ipu/kept_plans.h"

#include <cstring>

namespace superstep::machine::ipu {
namespace {

// FNV-1a of 32 bits.
std::uint32_t checksum_of(std::string_view bytes) {
  std::uint32_t hash = 0x811c9dc5u;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x01000193u;
  return hash;
}

class Writer {
 public:
  template <class Number>
  void add(Number number) {
    const double value = static_cast<double>(number);
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    text_.append(bytes, sizeof value);
  }
  void add_text(const std::string& text) {
    add(text.size());
    text_ += text;
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

// Beyond the end it reads zeros and says so.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  double number() {
    double value = 0;
    if (text_.size() < sizeof value) {
      whole_ = false;
      return 0;
    }
    std::memcpy(&value, text_.data(), sizeof value);
    text_.remove_prefix(sizeof value);
    return value;
  }
  // Of what can only be so many; more is no number of ours.
  std::int64_t count(double most = 1e15) {
    const double value = number();
    if (!(value >= 0 && value <= most)) whole_ = false;
    return whole_ ? static_cast<std::int64_t>(value) : 0;
  }
  std::string text() {
    const auto size = static_cast<std::size_t>(count(static_cast<double>(text_.size())));
    if (size > text_.size()) whole_ = false;
    if (!whole_) return {};
    std::string found(text_.substr(0, size));
    text_.remove_prefix(size);
    return found;
  }
  bool whole() const { return whole_; }
  bool ended() const { return text_.empty(); }

 private:
  std::string_view text_;
  bool whole_ = true;
};

void add_plan(Writer& writer, const Plan& plan) {
  writer.add_text(plan.vertex);
  writer.add_text(plan.partition);
  writer.add(plan.tiles);
  const Cycles& c = plan.cycles;
  const TileBytes& b = plan.bytes;
  for (const double number :
       {plan.macs, c.compute, c.exchange, c.sync, c.rearrange, c.control, b.operands, b.temporary,
        b.interleaved, b.code, b.pieces, b.partners, static_cast<double>(b.elements)})
    writer.add(number);
}

Plan read_plan(Reader& reader) {
  Plan plan;
  plan.vertex = reader.text();
  plan.partition = reader.text();
  plan.tiles = reader.count();
  Cycles& c = plan.cycles;
  TileBytes& b = plan.bytes;
  for (double* const number : {&plan.macs, &c.compute, &c.exchange, &c.sync, &c.rearrange, &c.control,
                               &b.operands, &b.temporary, &b.interleaved, &b.code, &b.pieces, &b.partners})
    *number = reader.number();
  b.elements = static_cast<int>(reader.count(1e6));
  return plan;
}

void add_partition(Writer& writer, const Partition& p) {
  for (const std::int64_t number :
       {p.groups, p.outputs, p.inputs, p.kernel, p.serial_outputs, p.serial_inputs})
    writer.add(number);
  writer.add(p.rows.size());
  for (const std::int64_t rows : p.rows) writer.add(rows);
}

// Axes of an operand, at most: far more than there are.
constexpr double most_axes = 64;

Partition read_partition(Reader& reader) {
  Partition p;
  for (std::int64_t* const number :
       {&p.groups, &p.outputs, &p.inputs, &p.kernel, &p.serial_outputs, &p.serial_inputs})
    *number = reader.count();
  p.rows.resize(static_cast<std::size_t>(reader.count(most_axes)));
  for (std::int64_t& rows : p.rows) rows = reader.count();
  return p;
}

}  // namespace

std::string record_of(const PlanKey& key, const PartPlan& plan) {
  Writer writer;
  writer.add(key.size());
  for (const double number : key) writer.add(number);
  add_plan(writer, plan.plan);
  writer.add(static_cast<int>(plan.form));
  writer.add(plan.combined);
  const Grain& grain = plan.grain;
  writer.add(static_cast<int>(grain.vertex));
  for (const std::int64_t number : {grain.inputs, grain.outputs, grain.kernel_height, grain.units})
    writer.add(number);
  add_partition(writer, plan.partition);
  writer.add(plan.swapped ? 1 : 0);
  const std::string body = writer.take();
  const std::uint32_t head[2] = {static_cast<std::uint32_t>(body.size()), checksum_of(body)};
  std::string record(sizeof head, '\0');
  std::memcpy(record.data(), head, sizeof head);
  return record + body;
}

namespace {

// False where it is no record of ours.
bool read_record(std::string_view body, PlansByKey& to) {
  constexpr double most_numbers = 256;  // of a key: far more than there are
  Reader reader(body);
  PlanKey key(static_cast<std::size_t>(reader.count(most_numbers)));
  for (double& number : key) number = reader.number();
  PartPlan plan;
  plan.plan = read_plan(reader);
  plan.form = static_cast<ProductForm>(reader.count(static_cast<double>(last_form)));
  plan.combined = reader.count();
  plan.grain.vertex = static_cast<Vertex>(reader.count(static_cast<double>(last_vertex)));
  Grain& grain = plan.grain;
  for (std::int64_t* const number : {&grain.inputs, &grain.outputs, &grain.kernel_height, &grain.units})
    *number = reader.count();
  plan.partition = read_partition(reader);
  plan.swapped = reader.count(1) == 1;
  if (!reader.whole() || !reader.ended()) return false;
  to.insert_or_assign(std::move(key), std::move(plan));
  return true;
}

}  // namespace

std::size_t read_records(std::string_view text, PlansByKey& to) {
  std::size_t done = 0;
  std::uint32_t head[2];
  while (text.size() - done >= sizeof head) {
    std::memcpy(head, text.data() + done, sizeof head);
    if (head[0] > text.size() - done - sizeof head) break;
    const std::string_view body = text.substr(done + sizeof head, head[0]);
    if (checksum_of(body) != head[1] || !read_record(body, to)) break;
    done += sizeof head + head[0];
  }
  return done;
}

}  // namespace superstep::machine::ipu
