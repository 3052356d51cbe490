#include "superstep/edge/protocol/request_json.h"

#include <fmt/format.h>

#include "superstep/base/json.h"
#include "superstep/base/printable.h"
#include "superstep/edge/protocol/request_check.h"

namespace superstep::edge {
namespace {

using nlohmann::json;

constexpr int deepest_data = 33;  // a level more than extents of a shape (request_check.h)

// Where the reader is in a request: whether in the data of an input, and of which.
class Place {
 public:
  // Each level has a list's or an object's beginning and its end; a key stands before its value.
  void key(std::string_view name) {
    key_ = name == "inputs" ? Key::inputs : name == "data" ? Key::data : Key::other;
  }
  void begin(bool list) {
    ++depth_;
    if (depth_ > deepest_json)
      refuse_request(fmt::format("is nested deeper than {} levels", deepest_json), "the request");
    if (data_depth_ > 0) return in_data();
    if (depth_ == 2 && list && key_ == Key::inputs) in_inputs_ = true;
    if (depth_ == 3 && in_inputs_) ++inputs_;
    if (depth_ == 4 && in_inputs_ && list && key_ == Key::data && in_object_) data_depth_ = depth_;
    if (depth_ == 3) in_object_ = !list;
    key_ = Key::other;
  }
  // True: the data of an input ended.
  bool end() {
    const bool ends_data = depth_ == data_depth_;
    if (ends_data) data_depth_ = 0;
    if (depth_ == 2) in_inputs_ = false;
    --depth_;
    return ends_data;
  }
  bool is_in_data() const { return data_depth_ > 0; }
  bool begins_data() const { return depth_ == data_depth_; }
  int depth() const { return depth_; }
  std::size_t input() const { return inputs_ - 1; }

 private:
  enum class Key { other, inputs, data };
  void in_data() const {
    if (depth_ - data_depth_ >= deepest_data)
      refuse_request("is nested too deep", fmt::format("the data of input {}", inputs_));
  }

  Key key_ = Key::other;
  int depth_ = 0, data_depth_ = 0;
  bool in_inputs_ = false, in_object_ = false;
  std::size_t inputs_ = 0;
};

// What the library's reader tells, for who is told of values alone.
template <class Told>
class Events : public nlohmann::json_sax<json> {
 public:
  bool null() override { return told().value(nullptr); }
  bool boolean(bool value) override { return told().value(value); }
  bool number_integer(std::int64_t value) override { return told().value(value); }
  bool number_unsigned(std::uint64_t value) override { return told().value(value); }
  bool number_float(double value, const std::string&) override { return told().value(value); }
  bool string(std::string& value) override { return told().value(std::move(value)); }
  bool binary(json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return told().begin(false); }
  bool start_array(std::size_t) override { return told().begin(true); }
  bool end_object() override { return told().end(); }
  bool end_array() override { return told().end(); }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception&) override {
    refuse_request(fmt::format("the request is no JSON object: byte {} is not understood", at));
  }

 private:
  Told& told() { return static_cast<Told&>(*this); }
};

class HeaderReader : public Events<HeaderReader> {
 public:
  bool key(std::string& name) override {
    if (place_.is_in_data()) return true;
    place_.key(name);
    count(name.size());
    key_ = std::move(name);
    return true;
  }
  template <class Value>
  bool value(Value&& value) {
    if (place_.is_in_data()) return true;
    if constexpr (std::is_same_v<std::remove_cvref_t<Value>, std::string>) count(value.size());
    add(json(std::forward<Value>(value)));
    return true;
  }
  bool begin(bool list) {
    place_.begin(list);
    if (!place_.is_in_data() || place_.begins_data())
      open_.push_back(add(list ? json::array() : json::object()));
    return true;
  }
  bool end() {
    const bool in_data = place_.is_in_data();
    if (place_.end() || !in_data) open_.pop_back();
    return true;
  }
  json take() { return std::move(root_); }

 private:
  void count(std::size_t bytes) {
    bytes_ += bytes;
    if (++values_ > most_header_values || bytes_ > most_header_bytes)
      refuse_request(fmt::format("has more than {} values or {} bytes beside its data", most_header_values,
                                 most_header_bytes),
                     "the request");
  }
  // Elements of what is open stay where they are while they are open themselves: only the last one grows.
  json* add(json value) {
    count(0);
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    json& holder = *open_.back();
    if (holder.is_object()) {
      if (holder.contains(key_)) refuse_request("is given twice", fmt::format("'{}'", printable(key_)));
      json& member = holder[key_];
      member = std::move(value);
      return &member;
    }
    holder.push_back(std::move(value));
    return &holder.back();
  }

  Place place_;
  json root_;
  std::vector<json*> open_;
  std::string key_;
  std::size_t values_ = 0, bytes_ = 0;
};

class DataReader : public Events<DataReader> {
 public:
  explicit DataReader(TakeValue take) : take_(take) {}
  bool key(std::string& name) override {
    if (place_.is_in_data()) refuse_request("'data' is a list of numbers", "an input");
    place_.key(name);
    return true;
  }
  template <class Value>
  bool value(Value&& value) {
    if (place_.is_in_data()) take_(place_.input(), json(std::forward<Value>(value)));
    return true;
  }
  bool begin(bool list) {
    place_.begin(list);
    return true;
  }
  bool end() {
    place_.end();
    return true;
  }

 private:
  TakeValue take_;
  Place place_;
};

}  // namespace

json request_header(std::string_view text) {
  HeaderReader reader;
  json::sax_parse(text, &reader);
  json header = reader.take();
  if (!header.is_object()) refuse_request("the request is no JSON object");
  return header;
}

void read_request_data(std::string_view text, TakeValue take) {
  DataReader reader(take);
  json::sax_parse(text, &reader);
}

}  // namespace superstep::edge
