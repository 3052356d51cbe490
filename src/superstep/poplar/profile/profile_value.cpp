#include <fmt/format.h>

#include <cmath>
#include <poplar/ProfileValue.hpp>
#include <poplar/exceptions.hpp>

namespace poplar {
namespace {

const ProfileValue nothing;
const ProfileValue::Vector no_values;
const ProfileValue::Map no_names;

const char* name_of(ProfileValue::Type type) {
  switch (type) {
    case ProfileValue::Type::BOOL_: return "a truth value";
    case ProfileValue::Type::STRING: return "text";
    case ProfileValue::Type::NUMBER: return "a number";
    case ProfileValue::Type::VECTOR: return "a list";
    case ProfileValue::Type::MAP: return "named values";
    case ProfileValue::Type::NONE: return "nothing";
  }
  return "?";
}

[[noreturn]] void wrong(ProfileValue::Type wanted, ProfileValue::Type is) {
  throw poplar_error(fmt::format("a value of a report is {}, not {}", name_of(is), name_of(wanted)));
}

void write_text(std::ostream& out, const std::string& text) {
  out << '"';
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\')
      out << '\\' << letter;
    else if (code < 0x20)
      out << fmt::format("\\u{:04x}", static_cast<unsigned>(code));
    else
      out << letter;
  }
  out << '"';
}

void new_line(std::ostream& out, bool pretty, int depth) {
  if (pretty) out << '\n' << std::string(static_cast<std::size_t>(2 * depth), ' ');
}

std::string number_text(const ProfileValue& value) {
  const double number = value.asDouble();
  if (number == static_cast<double>(value.asInt())) return std::to_string(value.asInt());
  return std::isfinite(number) ? fmt::format("{}", number) : std::string("null");
}

// NOLINTNEXTLINE(misc-no-recursion): values are made by hand, in as many levels as they have
void write(std::ostream& out, const ProfileValue& value, bool pretty, int depth) {
  const char* between = "";
  switch (value.type()) {
    case ProfileValue::Type::NONE: out << "null"; break;
    case ProfileValue::Type::BOOL_: out << (value.asBool() ? "true" : "false"); break;
    case ProfileValue::Type::NUMBER: out << number_text(value); break;
    case ProfileValue::Type::STRING: write_text(out, value.asString()); break;
    case ProfileValue::Type::VECTOR:
      out << '[';
      for (const ProfileValue& item : value.asVector()) {
        out << std::exchange(between, ",");
        new_line(out, pretty, depth + 1);
        write(out, item, pretty, depth + 1);
      }
      if (value.size() > 0) new_line(out, pretty, depth);
      out << ']';
      break;
    case ProfileValue::Type::MAP:
      out << '{';
      for (const auto& [name, item] : value.asMap()) {
        out << std::exchange(between, ",");
        new_line(out, pretty, depth + 1);
        write_text(out, name);
        out << (pretty ? ": " : ":");
        write(out, item, pretty, depth + 1);
      }
      if (value.size() > 0) new_line(out, pretty, depth);
      out << '}';
      break;
  }
}

}  // namespace

ProfileValue::ProfileValue() : type_(Type::NONE), isWhole_(true), whole_(0), number_(0) {}
ProfileValue::~ProfileValue() = default;
ProfileValue::ProfileValue(const ProfileValue&) = default;
ProfileValue::ProfileValue(ProfileValue&&) noexcept = default;
ProfileValue& ProfileValue::operator=(const ProfileValue&) = default;
ProfileValue& ProfileValue::operator=(ProfileValue&&) noexcept = default;

ProfileValue::ProfileValue(const char* text) : ProfileValue(std::string(text)) {}
ProfileValue::ProfileValue(std::string text) : ProfileValue() {
  type_ = Type::STRING;
  text_ = std::move(text);
}
ProfileValue::ProfileValue(Vector values) : ProfileValue() {
  type_ = Type::VECTOR;
  vector_ = std::make_shared<const Vector>(std::move(values));
}
ProfileValue::ProfileValue(Map values) : ProfileValue() {
  type_ = Type::MAP;
  map_ = std::make_shared<const Map>(std::move(values));
}

const ProfileValue& ProfileValue::operator[](const std::string& name) const {
  const Map& values = type_ == Type::NONE ? no_names : asMap();
  const auto found = values.find(name);
  return found == values.end() ? nothing : found->second;
}

const ProfileValue& ProfileValue::operator[](std::size_t place) const {
  const Vector& values = type_ == Type::NONE ? no_values : asVector();
  return place < values.size() ? values[place] : nothing;
}

std::size_t ProfileValue::size() const {
  return type_ == Type::VECTOR ? vector_->size() : type_ == Type::MAP ? map_->size() : 0;
}

const std::string& ProfileValue::asString() const {
  if (type_ != Type::STRING) wrong(Type::STRING, type_);
  return text_;
}
bool ProfileValue::asBool() const {
  if (type_ != Type::BOOL_) wrong(Type::BOOL_, type_);
  return whole_ != 0;
}
std::int64_t ProfileValue::asInt() const {
  if (type_ != Type::NUMBER) wrong(Type::NUMBER, type_);
  return whole_;
}
double ProfileValue::asDouble() const {
  if (type_ != Type::NUMBER) wrong(Type::NUMBER, type_);
  return isWhole_ ? static_cast<double>(whole_) : number_;
}
const ProfileValue::Vector& ProfileValue::asVector() const {
  if (type_ == Type::NONE) return no_values;
  if (type_ != Type::VECTOR) wrong(Type::VECTOR, type_);
  return *vector_;
}
const ProfileValue::Map& ProfileValue::asMap() const {
  if (type_ == Type::NONE) return no_names;
  if (type_ != Type::MAP) wrong(Type::MAP, type_);
  return *map_;
}

std::vector<std::uint64_t> ProfileValue::toUintVector() const {
  std::vector<std::uint64_t> result;
  for (const ProfileValue& item : asVector()) result.push_back(item.asUint());
  return result;
}

std::int64_t ProfileValue::sumInt() const {
  std::int64_t sum = 0;
  for (const ProfileValue& item : asVector()) sum += item.asInt();
  return sum;
}
double ProfileValue::sumDouble() const {
  double sum = 0;
  for (const ProfileValue& item : asVector()) sum += item.asDouble();
  return sum;
}
std::int64_t ProfileValue::sum2DInt() const {
  std::int64_t sum = 0;
  for (const ProfileValue& list : asVector()) sum += list.sumInt();
  return sum;
}

bool ProfileValue::equals(const ProfileValue& other) const {
  if (type_ != other.type_) return false;
  switch (type_) {
    case Type::NONE: return true;
    case Type::BOOL_: return whole_ == other.whole_;
    case Type::NUMBER: return asDouble() == other.asDouble();
    case Type::STRING: return text_ == other.text_;
    case Type::VECTOR: return *vector_ == *other.vector_;
    case Type::MAP: return *map_ == *other.map_;
  }
  return false;
}

void serializeToJSON(std::ostream& out, const ProfileValue& value, bool pretty) {
  write(out, value, pretty, 0);
}

}  // namespace poplar
