// Asks a served model: client HOST PORT MODEL INPUT EXTENT... g++ -std=c++17 client.cpp; needs Boost's
// headers alone.
#include <iostream>
#include <utility>
// Boost 1.74 takes the two above to be there.
#include <boost/asio.hpp>
#include <boost/beast.hpp>

int main(int count, char** words) {
  if (count < 6) return 2;
  boost::asio::io_context context;
  boost::beast::tcp_stream stream(context);
  stream.connect(boost::asio::ip::tcp::resolver(context).resolve(words[1], words[2]));
  std::string shape = "[1", data;  // one row of ones
  std::size_t values = 1;
  for (int i = 5; i < count; ++i) shape += "," + std::string(words[i]), values *= std::stoul(words[i]);
  for (std::size_t i = 0; i < values; ++i) data += i ? ",1" : "1";
  namespace http = boost::beast::http;
  http::request<http::string_body> request(http::verb::post, std::string("/v2/models/") + words[3] + "/infer",
                                           11);
  request.set(http::field::host, std::string(words[1]) + ":" + words[2]);
  request.body() = "{\"inputs\":[{\"name\":\"" + std::string(words[4]) +
                   "\",\"datatype\":\"FP32\",\"shape\":" + shape + "],\"data\":[" + data + "]}]}";
  request.prepare_payload();
  http::write(stream, request);
  boost::beast::flat_buffer buffer;
  http::response<http::string_body> answer;
  http::read(stream, buffer, answer);
  std::cout << answer.body() << "\n";
  return answer.result() == http::status::ok ? 0 : 1;
}
