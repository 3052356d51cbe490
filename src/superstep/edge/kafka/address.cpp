#include <algorithm>
#include <cctype>
#include <cmath>
#include <string_view>

#include "superstep/base/error.h"
#include "superstep/base/option_range.h"
#include "superstep/base/text.h"
#include "superstep/edge/kafka/kafka.h"

namespace superstep::edge {
namespace {

constexpr std::string_view scheme = "kafka://";

// What Kafka takes as the name of a topic, and what is taken here as one of a group.
bool is_name(std::string_view name) {
  constexpr std::size_t longest = 249;
  return !name.empty() && name.size() <= longest && name != "." && name != ".." &&
         std::ranges::all_of(name, [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
         });
}

bool is_broker(const std::string& broker) {
  const std::size_t colon = broker.rfind(':');
  return colon != std::string::npos && colon > 0 && colon + 1 < broker.size() &&
         std::ranges::all_of(broker.substr(colon + 1), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// "group=NAME" and "partitions=0,1", each at most once. False: something else.
bool read_options(std::string_view text, KafkaAddress& address) {
  constexpr std::int32_t most_partitions = 100'000;
  for (const std::string& option : split(text, '&')) {
    const std::size_t equals = option.find('=');
    const std::string name = option.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : option.substr(equals + 1);
    if (name == "group" && is_name(value)) {
      address.group = value;
    } else if (name == "partitions" && address.partitions.empty()) {
      for (const std::string& number : split(value, ',')) {
        const auto partition = finite_number(number);
        if (!partition || *partition < 0 || *partition > most_partitions ||
            *partition != std::floor(*partition))
          return false;
        address.partitions.push_back(static_cast<std::int32_t>(*partition));
      }
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string KafkaAddress::text() const { return std::string(scheme) + brokers + "/" + topic; }

bool is_kafka(const std::string& address) { return address.starts_with(scheme); }

KafkaAddress kafka_address(const std::string& text) {
  KafkaAddress address;
  std::string_view rest = text;
  if (rest.starts_with(scheme)) rest.remove_prefix(scheme.size());
  const std::size_t slash = rest.find('/'), question = rest.find('?');
  bool good = is_kafka(text) && slash != std::string_view::npos && slash < question;
  if (good) {
    address.brokers = rest.substr(0, slash);
    address.topic =
        rest.substr(slash + 1, question == std::string_view::npos ? question : question - slash - 1);
    if (question != std::string_view::npos) good = read_options(rest.substr(question + 1), address);
    good = good && is_name(address.topic) && std::ranges::all_of(split(address.brokers, ','), is_broker);
  }
  if (!good)
    throw Error(
        ErrorCode::invalid_argument, "is no address of a topic", text,
        "give kafka://HOST:9092/TOPIC, or kafka://HOST:9092,HOST:9092/TOPIC?group=NAME&partitions=0,1");
  return address;
}

}  // namespace superstep::edge
